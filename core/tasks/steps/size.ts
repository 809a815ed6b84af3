import { Failure } from '../../failure.ts'

/** The most values of a step's input or result, and the characters of all texts in it. */
export const maxValues = 2_000_000
export const maxCharacters = 16 << 20

/**
 * Throws Failure `payload_too_large` for a value that is too large to be copied or written as JSON. A part that is in it
 * several times counts several times. Without this a thread could need so much memory within one built-in function that
 * the whole process ends.
 */
export function requireSize(value: unknown): void {
  let values = 0
  let characters = 0
  const visit = (part: unknown): void => {
    if (++values > maxValues) throw tooLarge(`more than ${maxValues} values`)
    if (typeof part === 'string') characters += part.length
    else if (Array.isArray(part)) for (const item of part) visit(item)
    else if (part !== null && typeof part === 'object')
      for (const name of Object.keys(part)) {
        characters += name.length
        visit((part as Record<string, unknown>)[name])
      }
    if (characters > maxCharacters) throw tooLarge(`more than ${maxCharacters >> 20} MiB of text`)
  }
  visit(value)
}

/** The failure of a step whose value has too much of something. */
export const tooLarge = (what: string): Failure =>
  new Failure('payload_too_large', `The step has ${what}. Give it less, or select a part before.`)
