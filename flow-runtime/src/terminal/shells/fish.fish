# Follows an interactive fish: where its prompts and commands begin and end, and what its
# environment is. Read with -C, after the user's own files.
set -g __flow_nonce '@NONCE@'
set -g __flow_environment '@ENVIRONMENT@'
set -g __flow_command '@COMMAND@'
set -g __flow_count 0
@HISTORY@

function __flow_environment_write
    set -g __flow_count (math $__flow_count + 1)
    # What `set` writes of a value with a quotation mark cannot be read back, unless it is to show it.
    begin
        builtin echo "#flow $__flow_count"
        builtin set -xn
        builtin echo '#@NONCE@'
        builtin set -n
        builtin echo '#@NONCE@'
        builtin set -S
        builtin echo "#flow $__flow_count"
    end >$__flow_environment 2>/dev/null
end

function __flow_started --on-event fish_preexec
    builtin printf '\e]133;C;%s\a' $__flow_nonce >/dev/tty
end

function __flow_ended --on-event fish_postexec
    set -l __flow_status $status
    __flow_environment_write
    builtin printf '\e]133;D;%s;%s\a' $__flow_status $__flow_nonce >/dev/tty
end

function __flow_return
    return $argv[1]
end

# Runs before every prompt. Whatever shows it is kept and wrapped, again when it was replaced.
function __flow_prompt --on-event fish_prompt
    set -l __flow_status $status
    if test "$__flow_count" = 0
        __flow_environment_write
    end
    set -l __flow_details (functions --details --verbose fish_prompt)
    if test "$__flow_details[5]" != "$__flow_description"
        __flow_wrap
    end
    builtin printf '\e]133;A;%s\a' $__flow_nonce >/dev/tty
    return $__flow_status
end

# What is wrapped has a name of its own each time: the next prompt may call a copy of this one.
set -g __flow_wraps 0
set -g __flow_description 'The prompt, with marks around it'
function __flow_wrap
    functions -q fish_prompt
    or function fish_prompt
        builtin printf '> '
    end
    set -g __flow_wraps (math $__flow_wraps + 1)
    set -l __flow_wrapped __flow_user_prompt_$__flow_wraps
    functions -c fish_prompt $__flow_wrapped
    # Called by its name: a ctrl-c while it looks up a command by a variable ends fish 3.6.
    eval "function fish_prompt --description '$__flow_description'
        set -l __flow_status \$status
        builtin printf '\e]133;P;%s\a' \$__flow_nonce
        __flow_return \$__flow_status
        $__flow_wrapped
        builtin printf '\e]133;B;%s\a' \$__flow_nonce
    end"
end
__flow_wrap

# Whether the line that is edited is the shell's, and not that of a `read`.
function __flow_at_prompt
    test "$(status current-command)" = fish
end

function __flow_cancelled --on-event fish_cancel
    __flow_at_prompt
    and builtin printf '\e]133;A;%s\a' $__flow_nonce >/dev/tty
end

# Executes what is typed if it is complete, else says so, or that it is wrong, and takes it away.
function __flow_execute
    commandline --is-valid
    switch $status
        case 0
            commandline -f suppress-autosuggestion execute
        case 1
            # A line that ends in a backslash goes on, which it does not count as unfinished.
            set -l __flow_kind E
            if commandline -b | string match -rq '^(?:[^\\\\]|\\\\.)*\\\\$'
                set __flow_kind K
            end
            commandline ''
            builtin printf '\e]133;%s;%s\a' $__flow_kind $__flow_nonce >/dev/tty
        case '*'
            commandline ''
            builtin printf '\e]133;K;%s\a' $__flow_nonce >/dev/tty
    end
end

# Answers a key, by its number: the prompt is there and empty. The interrupt may have taken the word
# away that a command has ended.
function __flow_ready
    set -l __flow_status $status
    __flow_at_prompt
    or return
    commandline ''
    __flow_environment_write
    builtin printf '\e]133;R;%s%s;%s\a' $argv[1] $__flow_status $__flow_nonce >/dev/tty
end

# Answers a key, by its number: whether the line is empty. From 4 on it asks once more, and what an
# editor has made of the key that was not answered may stand there as text.
function __flow_asked
    __flow_at_prompt
    or return
    set -l __flow_held e
    set -l __flow_line (commandline -b | string collect)
    if test $argv[1] -gt 3
        set __flow_line (string replace -r '\e?\[?915[0-3]~$' '' -- $__flow_line | string collect)
        commandline -r -- "$__flow_line"
    end
    if test -n "$__flow_line"; or commandline --paging-mode
        set __flow_held t
    end
    builtin printf '\e]133;Q;%s%s;%s\a' $argv[1] $__flow_held $__flow_nonce >/dev/tty
end

# Clears the line, ready to be filled. A search that has found nothing takes what is typed as long as the
# line does not change.
function __flow_clear
    commandline -f cancel
    commandline ''
    if test "$fish_bind_mode" != insert; and test "$fish_key_bindings" != fish_default_key_bindings
        set fish_bind_mode insert
    end
end

# Fills the line with a command, whatever is bound to keys. Pasted, it would take a script for every
# quote and every line end.
function __flow_fill
    __flow_clear
    builtin read --null --local __flow_text <$__flow_command
    or return
    # Behind a blank, no word is an abbreviation that is written out when the line is executed. A backslash
    # at the end has the line go on.
    string match -q '*\\' -- $__flow_text
    or set __flow_text "$__flow_text "
    commandline -r -- $__flow_text
end
for mode in default insert visual replace replace_one
    bind -M $mode \e\[9133~ __flow_execute
    bind -M $mode \e\[9134~ __flow_clear
    bind -M $mode \e\[9137~ __flow_fill
    for key in 0 1 2 3 4 5 6 7
        bind -M $mode \e\[915$key~ "__flow_asked $key"
    end
    for key in 0 1 2 3 4 5 6 7 8 9
        bind -M $mode \e\[914$key~ "__flow_ready $key"
    end
end
# A tab that is pasted is one; older versions drop it.
bind -M paste \t 'commandline -i \t'
