import { type Document, parseDocument } from 'yaml'
import { invalidValue } from './failure.ts'

/**
 * Parses a text as one YAML document. `path` is used only in messages, which begin with it and, for a syntax error, with
 * line and column. Throws Failure `invalid_value` for every text that has no value: also for aliases without an anchor,
 * aliases that contain themselves or expand without bound, and nesting deeper than the parser's stack.
 */
export function readYaml(text: string, path: string): { document: Document; value: unknown } {
  try {
    // Warnings about tags and keys would be printed by node, beside the messages of infer.
    const document = parseDocument(text, { logLevel: 'error' })
    const [syntax] = document.errors
    if (syntax) {
      const at = syntax.linePos ? `:${syntax.linePos[0].line}:${syntax.linePos[0].col}` : ''
      throw invalidValue(`${path}${at}: ${faultText(syntax)}. This is not valid YAML.`)
    }
    const value: unknown = document.toJS()
    if (isCircular(value)) throw new ReferenceError('circular')
    return { document, value }
  } catch (cause) {
    if (cause instanceof RangeError) throw invalidValue(`${path}: ${tooDeep}.`, { cause })
    if (!(cause instanceof ReferenceError)) throw cause
    const [, anchor] = /Unresolved alias.*: (.*)/.exec(cause.message) ?? []
    if (anchor !== undefined)
      throw invalidValue(`${path}: The alias '*${anchor}' has no anchor '&${anchor}' before it.`, { cause })
    const why = cause.message === 'circular' ? 'contain themselves' : 'stand for too many values'
    throw invalidValue(`${path}: Aliases (*name) ${why}. Write out what they stand for.`, { cause })
  }
}

const tooDeep = 'Lists and mappings are nested too deeply'

function faultText({ code, message }: { code: string; message: string }): string {
  if (code === 'MULTIPLE_DOCS') return 'A second document begins here; a file has one'
  if (/call stack/.test(message)) return tooDeep
  return message.split('\n')[0]!.replace(/ at line \d+, column \d+:?$/, '')
}

/** Whether a value contains itself. */
function isCircular(value: unknown, above = new Set<unknown>(), seen = new Set<unknown>()): boolean {
  if (typeof value !== 'object' || value === null || (seen.has(value) && !above.has(value))) return false
  if (above.has(value)) return true
  seen.add(value)
  above.add(value)
  const found = Object.values(value).some(member => isCircular(member, above, seen))
  above.delete(value)
  return found
}
