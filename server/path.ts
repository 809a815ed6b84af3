/** Paths that need no reading: nothing is escaped in them and no segment begins with a dot. */
const plain = /^(?:\/[\w~:@!$&'()*+,;=-][\w.~:@!$&'()*+,;=-]*)+$/
/** Of characters that mean nothing in a path, so that they mean the same escaped. */
const needlessEscape = /%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/gi

/**
 * The path of a request as routes are written, read as the URL standard has it: without an origin or dot segments,
 * and with no letter, digit or `-._~` escaped. Undefined when it is none, or what is escaped is not UTF-8.
 */
export function pathOf(url: string): string | undefined {
  const end = url.indexOf('?')
  const written = end < 0 ? url : url.slice(0, end)
  if (plain.test(written)) return written
  const path = URL.parse(written.startsWith('/') ? `http://localhost${written}` : written)?.pathname
  if (!path?.includes('%')) return path
  try {
    decodeURI(path)
  } catch {
    return undefined
  }
  return path.replace(needlessEscape, escape => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : escape
  })
}

/** The parameters of a path, decoded: model ids with a slash come encoded or raw, and the handler sees the id. */
export function decoded(params: Record<string, string> | undefined): Record<string, string> {
  if (!params) return {}
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      try {
        return [name, decodeURIComponent(value)]
      } catch {
        return [name, value]
      }
    }),
  )
}

/** Trailing and doubled slashes are ignored; the query is left as it is. */
export function tidy(url: string): string {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  if (!path.includes('//') && (path.length === 1 || !path.endsWith('/'))) return url
  const clean = path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
  return at < 0 ? clean : clean + url.slice(at)
}
