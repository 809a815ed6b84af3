import { parseReference, type ReferenceStep } from './references.ts'

/** Parses a path of a node's `outputs`, which may begin with `result.`; undefined if it is invalid. */
export function outputPath(text: string): readonly ReferenceStep[] | undefined {
  try {
    const { path } = parseReference(`nodes.${text}`)
    return path[0] === 'result' && path.length > 1 ? path.slice(1) : path
  } catch {
    return undefined
  }
}
