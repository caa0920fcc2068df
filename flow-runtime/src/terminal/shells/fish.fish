# Follows an interactive fish: where its prompts and commands begin and end, and what its
# environment is. Read with -C, after the user's own files.
set -g __flow_nonce '@NONCE@'
set -g __flow_environment '@ENVIRONMENT@'
set -g __flow_count 0
@HISTORY@

function __flow_environment_write
    set -g __flow_count (math $__flow_count + 1)
    begin
        builtin echo "#flow $__flow_count"
        builtin set -xL
        builtin echo '#@NONCE@'
        builtin set -L
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

# Whatever shows the prompt is kept and wrapped, again when it was replaced.
function __flow_prompt --on-event fish_prompt
    set -l __flow_status $status
    if test "$__flow_count" = 0
        __flow_environment_write
    end
    builtin printf '\e]133;A;%s\a' $__flow_nonce >/dev/tty
    return $__flow_status
end

function __flow_wrap
    functions -q fish_prompt
    or function fish_prompt
        builtin printf '> '
    end
    functions -c fish_prompt __flow_user_prompt
    function fish_prompt
        set -l __flow_status $status
        builtin printf '\e]133;P;%s\a' $__flow_nonce
        __flow_return $__flow_status
        __flow_user_prompt
        builtin printf '\e]133;B;%s\a' $__flow_nonce
    end
end
__flow_wrap

function __flow_cancelled --on-event fish_cancel
    builtin printf '\e]133;A;%s\a' $__flow_nonce >/dev/tty
end

# Executes what is typed if it is complete, else says so, or that it is wrong, and takes it away.
function __flow_execute
    commandline --is-valid
    switch $status
        case 0
            commandline -f execute
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

# Says that the prompt is there and empty. The interrupt may have taken the word away that a command
# has ended.
function __flow_interrupted
    commandline ''
    __flow_environment_write
    builtin printf '\e]133;A;%s\a\e]133;B;%s\a' $__flow_nonce $__flow_nonce >/dev/tty
end
for mode in default insert
    bind -M $mode \e\[9133~ __flow_execute
    bind -M $mode \e\[9134~ __flow_interrupted
end
# A tab that is pasted is one; older versions drop it.
bind -M paste \t 'commandline -i \t'
