/**
 * The header of an answer that names what was left out of its request: what only describes, or asks for something extra
 * that the caller does not need to go on. Engines send it too.
 */
export const ignoredHeader = 'x-infer-ignored'

/** The line in the log of a job, which has no header. */
export const ignoredLine = (modelId: string, paths: string): string =>
  `Left out, because the engine of '${modelId}' cannot keep to it: ${paths}`

const maxLength = 1000

/**
 * Returns paths as the value of the header, separated by commas, as many as fit in a kilobyte; '' for none. What a header
 * cannot have is percent-encoded.
 */
export function ignoredText(paths: readonly string[]): string {
  let text = ''
  for (const path of new Set(paths)) {
    const written = path.toWellFormed().replace(/[^!-+\--~]/gu, encodeURIComponent)
    const longer = text === '' ? written : `${text}, ${written}`
    if (longer.length > maxLength) return text === '' ? `${longer.slice(0, maxLength - 1)}~` : text
    text = longer
  }
  return text
}
