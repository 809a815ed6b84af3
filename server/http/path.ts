/** Paths that need no parsing: nothing is escaped in them and no segment begins with a dot. */
const plain = /^(?:\/[\w~:@!$&'()*+,;=-][\w.~:@!$&'()*+,;=-]*)+$/
/** Escapes of characters without a meaning in paths, so that the escaped form means the same. */
const needlessEscape = /%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/gi

/**
 * Returns the path of a request in the form of route paths, parsed by the URL standard: without an origin or dot
 * segments, and with no letter, digit or `-._~` escaped. Undefined if it is no path, or an escape is not UTF-8.
 */
export function requestPath(url: string): string | undefined {
  const end = url.indexOf('?')
  const raw = end < 0 ? url : url.slice(0, end)
  if (plain.test(raw)) return raw
  const path = URL.parse(raw.startsWith('/') ? `http://localhost${raw}` : raw)?.pathname
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

/** Decodes the parameters of a path: clients send the slash in a model id encoded or raw. */
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

/** Removes trailing and doubled slashes from the path. The query is unchanged. */
export function tidy(url: string): string {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  if (!path.includes('//') && (path.length === 1 || !path.endsWith('/'))) return url
  const clean = path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
  return at < 0 ? clean : clean + url.slice(at)
}
