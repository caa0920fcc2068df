#compdef flow
# Completion of flow for zsh.
_flow() {
    local line
    local -a values shown open
    for line in "${(@f)$("$words[1]" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        local value=${line%%$'\t'*} told=
        [[ $line == *$'\t'* ]] && told="  -- ${line#*$'\t'}"
        if [[ $value == *= ]]; then
            open+=("$value")
        else
            values+=("$value")
            shown+=("$value$told")
        fi
    done
    if (( $#values + $#open )); then
        if (( $#values )); then compadd -l -d shown -a values; fi
        if (( $#open )); then compadd -S '' -a open; fi
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_flow" ]; then
    _flow "$@"
else
    compdef _flow flow
fi
