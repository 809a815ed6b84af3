const protocols = new Set(['http:', 'https:', 'mailto:'])

/** Returns the address of a link that may be followed: a page or a mail address. Undefined for scripts and others. */
export function safeLink(href: string): string | undefined {
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return protocols.has(url.protocol) ? url.href : undefined
}

const named: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  copy: '©',
  gt: '>',
  hellip: '…',
  lt: '<',
  mdash: '—',
  nbsp: '\u00A0',
  ndash: '–',
  quot: '"',
  times: '×',
}

/** Returns a text with the characters that `&amp;`, `&#8212;` and the like stand for. */
export const withoutEntities = (text: string): string =>
  text.replaceAll(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-z]+));/g,
    (all, decimal, hex, name: string | undefined) => {
      if (name !== undefined) return Object.hasOwn(named, name) ? named[name]! : all
      const code = decimal === undefined ? Number.parseInt(hex as string, 16) : Number(decimal)
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all
    },
  )
