import type { Lexer, Token } from 'marked'

/** A formula in a text: TeX between `$…$`, `$$…$$`, `\(…\)` or `\[…\]`. */
export interface MathToken {
  type: 'math'
  raw: string
  /** The TeX. */
  text: string
  /** Whether it stands on lines of its own. */
  isDisplay: boolean
}

/** Characters of a formula; a longer one is shown as it was written. */
const maxLength = 5_000

/** What ends a formula, by what begins it. */
const closings: Readonly<Record<string, string>> = { $$: '$$', '\\[': '\\]', '\\(': '\\)' }

/** Returns the formula at the beginning of a text, which one of the long marks begins. */
function longFormula(src: string): MathToken | undefined {
  const opening = src.slice(0, 2)
  const closing = Object.hasOwn(closings, opening) ? closings[opening]! : undefined
  const end = closing === undefined ? -1 : src.slice(0, maxLength + 4).indexOf(closing, 2)
  if (end < 0) return undefined
  const text = src.slice(2, end)
  if (!isFormula(text)) return undefined
  return { type: 'math', raw: src.slice(0, end + 2), text, isDisplay: opening !== '\\(' }
}

const isFormula = (text: string): boolean =>
  text.length <= maxLength && text.trim() !== '' && !/`|\n[ \t]*\n/.test(text)

/** Whether a text is an amount with words behind it, `5 and 10`, or with a bracket that was opened before, `5), 10`. */
const isPrice = (text: string): boolean =>
  /^\d[^\\^_={}<>]*$/.test(text) && (/\s\p{L}{2,}/u.test(text) || (/[)\]]/.test(text) && !/[([]/.test(text)))

/**
 * Returns the formula between two single signs. Prices are none: of two amounts the second sign follows a blank or precedes a
 * digit, and a sign behind a letter or digit is that of a currency.
 */
function shortFormula(src: string, before: string): MathToken | undefined {
  if (!/^\$[^\s$]/.test(src) || /[\p{L}\d$]/u.test(before)) return undefined
  const end = closingSign(src)
  if (end === undefined || /[\s\\]/.test(src[end - 1]!) || /[\p{L}\d$]/u.test(src[end + 1] ?? '')) return undefined
  const text = src.slice(1, end)
  if (!isFormula(text) || isPrice(text)) return undefined
  return { type: 'math', raw: src.slice(0, end + 1), text, isDisplay: false }
}

/** Where the next sign stands that is not escaped. */
function closingSign(src: string): number | undefined {
  for (let at = 1; at < src.length; at++)
    if (src[at] === '\\') at++
    else if (src[at] === '$') return at
  return undefined
}

const inline = (src: string, tokens: readonly Token[] = []): MathToken | undefined =>
  longFormula(src) ?? shortFormula(src, tokens.at(-1)?.raw.slice(-1) ?? '')

/** A formula that has its lines alone. */
function block(src: string): MathToken | undefined {
  const indent = /^ {0,3}(?=\$\$|\\\[)/.exec(src)?.[0].length
  const found = indent === undefined ? undefined : longFormula(src.slice(indent))
  if (!found) return undefined
  const rest = /^[ \t]*(?:\n+|$)/.exec(src.slice(indent! + found.raw.length))?.[0]
  return rest === undefined ? undefined : { ...found, raw: src.slice(0, indent! + found.raw.length + rest.length) }
}

/** Where the next formula may begin; undefined: nowhere. */
const startOf = (pattern: RegExp) => (src: string) => {
  const at = src.search(pattern)
  return at < 0 ? undefined : at
}

/** Where the next formula of this paragraph may begin: behind an empty line nothing is looked for. */
function startOfBlock(src: string): number | undefined {
  const found = /\n(?:[ \t]*\n| {0,3}(?=(\$\$|\\\[)))/.exec(src)
  return found?.[1] === undefined ? undefined : found.index + 1
}

/** Options of marked's Lexer that find formulas. */
export const mathExtensions = {
  renderers: {},
  childTokens: {},
  inline: [inline],
  startInline: [startOf(/\$|\\[([]/)],
  block: [block],
  startBlock: [startOfBlock],
} satisfies NonNullable<ConstructorParameters<typeof Lexer>[0]>['extensions']
