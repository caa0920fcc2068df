# Completion of flow for bash.
_flow() {
    local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} words candidate
    # Bash takes words apart at `:` and `=`; flow does not.
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local typed=${words[${#words[@]}-1]}
    [[ $current == [:=] ]] && current=
    local head=${typed%"$current"}
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("${candidate#"$head"}")
    done < <("$1" __complete "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o bashdefault -o default -F _flow flow
