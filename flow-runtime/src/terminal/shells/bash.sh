# Follows an interactive bash: where its prompts and commands begin and end, and what its
# environment is. Read after the user's own file.

# Names stand for what they are here, whatever the user has made of them.
if \builtin shopt -q expand_aliases; then
    __flow_aliases=yes
    \builtin shopt -u expand_aliases
fi
@HISTORY@

__flow_nonce='@NONCE@'
__flow_environment='@ENVIRONMENT@'
__flow_count=0
# The prompts name the nonce by its variable, so that a shell that inherits them does not know it.
__flow_open='\[\e]133;P;${__flow_nonce-}\a\]'
__flow_input='\[\e]133;B;${__flow_nonce-}\a\]'
__flow_more='\[\e]133;K;${__flow_nonce-}\a\]'
__flow_rest='\[\e]133;M;${__flow_nonce-}\a\]'
__flow_starting='\e]133;S;${__flow_nonce-}\a'
__flow_start='\e]133;C;${__flow_nonce-}\a'

# Runs before anything else of the prompt. The file is complete when the mark appears.
__flow_ended() {
    __flow_count=$((__flow_count + 1))
    {
        \builtin printf '#flow %s\n' "$__flow_count"
        \builtin declare -p
        \builtin printf '#flow %s\n' "$__flow_count"
    } >|"$__flow_environment"
    \builtin printf '\e]133;D;%s;%s\a' "$1" "$__flow_nonce" >/dev/tty
}

# Runs after everything else of the prompt, so that it sees what others made of it.
__flow_prompt() {
    \builtin shopt -s promptvars
    if [[ ${PS1-} != *"$__flow_input" ]]; then
        PS1=$__flow_open${PS1-}$__flow_input
    fi
    if [[ ${PS2-} != "$__flow_more"*"$__flow_rest" ]]; then
        PS2=${PS2-}
        PS2=${PS2//"$__flow_more"}
        PS2=$__flow_more${PS2//"$__flow_rest"}$__flow_rest
    fi
    if [[ ${PS0-} != *"$__flow_start" ]]; then
        PS0=$__flow_starting${PS0-}$__flow_start
    fi
    if [[ ${PROMPT_COMMAND[0]-} != "$__flow_first" ]]; then
        __flow_install
    fi
    \builtin printf '\e]133;A;%s\a' "$__flow_nonce" >/dev/tty
}

# The braces take the trace of `set -x` along, and what a DEBUG trap writes.
__flow_first='@HOOK@'
__flow_last='{ __flow_prompt; } >/dev/null 2>&1'

__flow_install() {
    local command
    # `set -k` takes what follows a builtin for its environment where it looks like an assignment.
    local -a others
    others=()
    for command in "${PROMPT_COMMAND[@]}"; do
        if [[ $command != "$__flow_first" && $command != "$__flow_last" ]]; then
            others+=("$command")
        fi
    done
    PROMPT_COMMAND=("$__flow_first" "${others[@]}" "$__flow_last")
}

# Without one of these nothing tells where the shell is.
if [[ ! $(\builtin declare -p PS0 PS1 PS2 PROMPT_COMMAND 2>/dev/null) =~ (^|$'\n')'declare -'[a-zA-Z]*r ]]; then
    __flow_install
fi
# Answers a key, by its number: whether the line is empty. From 4 on it asks once more, and what an
# editor has made of the key that was not answered may stand there as text.
__flow_asked() {
    local held
    held=e
    if (($1 > 3)) && [[ $READLINE_LINE == *915[0-3]'~' ]]; then
        READLINE_LINE=${READLINE_LINE%915?'~'}
        READLINE_LINE=${READLINE_LINE%'['}
        READLINE_LINE=${READLINE_LINE%$'\e'}
        READLINE_POINT=${#READLINE_LINE}
    fi
    if [[ -n $READLINE_LINE ]]; then
        held=t
    fi
    \builtin printf '\e]133;Q;%s%s;%s\a' "$1" "$held" "$__flow_nonce" >/dev/tty
}

# Keys that clear the line, ready to be filled, and that are answered, whatever else is bound.
__flow_bind() {
    local map key
    for map in emacs vi-insert vi-command; do
        \builtin bind -m "$map" '"\e[9134~": kill-whole-line'
        for key in 0 1 2 3 4 5 6 7; do
            # The last word of the command before is handed on.
            \builtin bind -m "$map" -x "\"\\e[915$key~\": { __flow_asked $key \"\$_\"; } >/dev/null 2>&1"
        done
    done
    \builtin bind -m vi-command '"\e[9135~": vi-insertion-mode'
    \builtin bind -m vi-command '"\e[9136~": kill-whole-line'
    \builtin bind -m vi-command '"\e[9134~": "\e[9136~\e[9135~"'
}
__flow_bind 2>/dev/null
unset -f __flow_bind
if [[ -n ${__flow_aliases-} ]]; then
    \builtin shopt -s expand_aliases
fi
