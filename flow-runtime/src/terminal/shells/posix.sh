# Follows an interactive POSIX shell: where its prompts are, how commands ended, and what its
# environment is. Read through ENV, after the user's own file of that name.
@USER_ENV@
__flow_environment='@ENVIRONMENT@'

# Runs in a subshell for every prompt, with the exit code of the last command. The file is complete
# when the mark appears.
__flow_ended() {
    {
        echo "#flow $2"
        export -p
        echo '#@NONCE@'
        set
        echo "#flow $2"
    } >|"$__flow_environment" 2>/dev/null
    printf '\033]133;D;%s;%s\007\033]133;A;%s\007' "$1" '@NONCE@' '@NONCE@'
}
__flow_count=0
PS1='$(__flow_ended "$?" "$__flow_count")'"${PS1-\$ }"'@ESC@]133;B;@NONCE@@BEL@'
PS2='@ESC@]133;K;@NONCE@@BEL@'"${PS2-> }"
