# Follows an interactive POSIX shell: where its prompts are, how commands ended, and what its
# environment is. Read through ENV, after the user's own file of that name.
@USER_FILE@
__flow_environment='@ENVIRONMENT@'

# Runs in a subshell for every prompt, with the exit code of the last command. The file is complete
# when the mark appears, which comes wherever the shell's messages go.
__flow_ended() {
    {
        command echo "#flow 1"
        export -p
        command echo '#@NONCE@'
        set
        command echo "#flow 1"
    } >|"$__flow_environment"
    command printf '\033]133;D;%s;%s\007\033]133;A;%s\007' "$1" "$__flow_nonce" "$__flow_nonce" >/dev/tty
}
# A shell that inherits the prompts knows neither the nonce nor the function.
__flow_nonce='@NONCE@'
# The braces take the trace of `set -x` along.
PS1='${__flow_nonce:+$({ __flow_ended "$?"; } >/dev/null 2>&1)}'"${PS1-\$ }"'@ESC@]133;B;${__flow_nonce-}@BEL@'
PS2='@ESC@]133;K;${__flow_nonce-}@BEL@'"${PS2-> }"'@ESC@]133;M;${__flow_nonce-}@BEL@'
