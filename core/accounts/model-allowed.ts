/** Matches a model id against patterns such as `qwen/*`; `*` stands for any characters. */
export const modelAllowed = (patterns: readonly string[] | null, modelId: string): boolean =>
  patterns === null ||
  patterns.some(pattern => {
    const parts = pattern.split('*')
    if (parts.length === 1) return pattern === modelId
    const [first = '', last = ''] = [parts[0], parts.at(-1)]
    if (!modelId.startsWith(first) || !modelId.endsWith(last) || modelId.length < first.length + last.length)
      return false
    let at = first.length
    for (const part of parts.slice(1, -1)) {
      const found = modelId.indexOf(part, at)
      if (found < 0 || found + part.length > modelId.length - last.length) return false
      at = found + part.length
    }
    return true
  })
