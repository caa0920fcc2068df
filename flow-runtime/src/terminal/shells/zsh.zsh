# Follows an interactive zsh: where its prompts and commands begin and end, and what its
# environment is. Read after the user's own file.

# Names stand for what they are here, whatever the user has made of them.
if [[ -o aliases ]]; then
    __flow_aliases=yes
    \builtin unsetopt aliases
fi
@HISTORY@

typeset -g __flow_nonce='@NONCE@'
typeset -g __flow_environment='@ENVIRONMENT@'
typeset -g __flow_open=$'%{\e]133;P;@NONCE@\a%}'
typeset -g __flow_input=$'%{\e]133;B;@NONCE@\a%}'
typeset -g __flow_more=$'%{\e]133;K;@NONCE@\a%}'
typeset -gi __flow_count=0
typeset -g __flow_partial=no
typeset -g __flow_told=no

# The braces take the trace of `set -x` along, and what a DEBUG trap writes within them.

# zsh shows its sign for an unfinished line, and blanks that make the line wrap, before it runs any
# hook, where they would look like output. So that is switched off while nobody looks; whoever reads
# the marks ends such a line instead.
__flow_whole() {
    # What a function sets stays set, whatever the user wants of that; this one is restored always.
    unsetopt localoptions
    if [[ -o promptsp ]]; then
        __flow_partial=yes
        unsetopt promptsp
    fi
}

# Runs before a command.
__flow_started() {
    {
        unsetopt localoptions
        __flow_whole
        builtin printf '\e]133;C;%s\a' "$__flow_nonce" >/dev/tty
    } >/dev/null 2>&1
}

# Runs before the other hooks of the prompt.
__flow_ended() {
    {
        __flow_tell $?
        __flow_told=no
        unsetopt localoptions
        if [[ $__flow_partial == yes ]]; then
            __flow_partial=no
            setopt promptsp
        fi
    } >/dev/null 2>&1
}

# Runs before the function `precmd`, which runs before all hooks: what that prints is no output. Whoever
# else calls that function tells nothing by it.
__flow_before() {
    {
        if [[ $ZSH_EVAL_CONTEXT == shfunc:shfunc ]]; then
            __flow_tell $1
            __flow_told=yes
        fi
    } >/dev/null 2>&1
    return $1
}

# The file is complete when the mark appears.
__flow_tell() {
    if [[ $__flow_told == no ]]; then
        __flow_write $1
        if [[ $__flow_partial == yes ]]; then
            builtin printf '\e]133;L;%s\a' "$__flow_nonce" >/dev/tty
        fi
    fi
}

__flow_write() {
    emulate -L zsh
    (( __flow_count += 1 ))
    {
        builtin print -r -- "#flow $__flow_count"
        builtin typeset -p
        builtin print -r -- "#flow $__flow_count"
    } >|"$__flow_environment"
    builtin printf '\e]133;D;%s;%s\a' "$1" "$__flow_nonce" >/dev/tty
}

# Runs after the other hooks of the prompt, so that it sees what they made of it.
__flow_prompt() {
    {
        __flow_wrap
    } >/dev/null 2>&1
}

__flow_wrap() {
    emulate -L zsh
    if [[ $PS1 != *"$__flow_input" ]]; then
        PS1=$__flow_open$PS1$__flow_input
    fi
    if [[ $PS2 != "$__flow_more"* ]]; then
        PS2=$__flow_more$PS2
    fi
    __flow_precede
    # Keymaps can be replaced as a whole.
    builtin bindkey -M main "${__flow_keys[@]}"
    builtin bindkey -M vicmd "${__flow_keys[@]}"
    # A shell that inherited the prompts would show our marks as its own.
    typeset -g +x PS1 PS2
    if [[ ${precmd_functions[1]-} != __flow_ended || ${precmd_functions[-1]-} != __flow_prompt ||
        ${preexec_functions[-1]-} != __flow_started ]]; then
        __flow_install
    fi
    builtin printf '\e]133;A;%s\a' "$__flow_nonce" >/dev/tty
}

# Answers a key, by its number: whether the line is empty. From 4 on it asks once more, and what an
# editor has made of the key that was not answered may stand there as text.
__flow_asked() {
    {
        __flow_answer "${WIDGET##*_}"
    } >/dev/null 2>&1
}

__flow_answer() {
    emulate -L zsh
    local held=e
    if (( $1 > 3 )); then
        BUFFER=${BUFFER%%(|(|$'\e')\[)915[0-3]\~}
    fi
    if [[ -n $BUFFER ]]; then
        held=t
    elif [[ $CONTEXT != start ]]; then
        held=m
    fi
    builtin printf '\e]133;Q;%s%s;%s\a' "$1" "$held" "$__flow_nonce" >/dev/tty
}

# Clears the line, ready to be filled.
__flow_clear() {
    {
        zle kill-buffer
        zle -K main
    } >/dev/null 2>&1
}

# Fills the line with a command, whatever plugins make of keys and of what is pasted.
__flow_fill() {
    {
        __flow_clear
        __flow_take
    } >/dev/null 2>&1
}

# By the shell itself, which needs no variable and no command for that.
__flow_take() {
    emulate -L zsh
    BUFFER="$(<'@COMMAND@')"
    CURSOR=${#BUFFER}
}

zle -N __flow_clear
zle -N __flow_fill
typeset -ga __flow_keys
__flow_keys=('\e[9134~' __flow_clear '\e[9137~' __flow_fill)
# Braces may stand for themselves (`setopt ignore_braces`).
for __flow_key in 0 1 2 3 4 5 6 7; do
    zle -N "__flow_asked_$__flow_key" __flow_asked
    __flow_keys+=("\e[915$__flow_key~" "__flow_asked_$__flow_key")
done
unset __flow_key

# Keeps `$?` for the function, and lets a status that is not 0 end no shell (`set -e`).
__flow_precede() {
    emulate -L zsh
    local body=${functions[precmd]-}
    if [[ -n $body && $body != *__flow_before* && $body != *'autoload -X'* ]]; then
        functions[precmd]='{ __flow_before $?; } >/dev/null 2>&1 && { :; } >/dev/null 2>&1'$'\n'$body
    fi
}

__flow_install() {
    emulate -L zsh
    typeset -ga precmd_functions preexec_functions
    precmd_functions=(__flow_ended ${precmd_functions:#__flow_*} __flow_prompt)
    preexec_functions=(${preexec_functions:#__flow_*} __flow_started)
}

__flow_install
__flow_precede
__flow_whole
if [[ -n ${__flow_aliases-} ]]; then
    \builtin setopt aliases
fi
