/** The clients that add a path of their own to a base URL. The first that knows a path is named. */
const clients = [
  { of: 'OpenAI', base: '/v1', routes: '/std/v1' },
  { of: 'Anthropic', base: '/anthropic', routes: '/anthropic' },
  { of: 'Ollama', base: '/ollama', routes: '/ollama' },
] as const

/** What programs put before a path. One segment alone is too little to know a path by, if something else is before it. */
const prefixes = /^(\/(v\d+|std|api|openai|anthropic|ollama|inference))*$/

/**
 * Returns the sentence that names the base URL under which a path without a route would have one, such as
 * `/openai/v1/chat/completions` or `/api/tags`; undefined for other paths. `paths`: those of all routes.
 */
export function openBaseAddresses(paths: Iterable<string>): (path: string) => string | undefined {
  /** The client and its full path, by the last segments of that path. */
  const known = new Map<string, { client: (typeof clients)[number]; rest: string }>()
  // Short ones first: `/completions` is its own path before it is the end of another.
  const all = [...paths].filter(path => !/[:*]/.test(path)).toSorted((a, b) => a.length - b.length)
  for (const client of clients)
    for (const path of all) {
      if (!path.startsWith(`${client.routes}/`)) continue
      const rest = path.slice(client.routes.length)
      for (const end of ends(rest)) if (!known.has(end)) known.set(end, { client, rest })
    }

  return path => {
    const end = ends(path).find(one => known.has(one))
    if (end === undefined) return undefined
    const before = path.toLowerCase().slice(0, -end.length)
    if (!end.includes('/', 1) && !prefixes.test(before)) return undefined
    const { client, rest } = known.get(end)!
    return `The base URL of clients of ${client.of} is '${client.base}' of this server: that path is ${client.base}${rest}.`
  }
}

/** Returns the ends of a path, the whole first: `/a/b`, `/b`. */
function ends(path: string): string[] {
  const segments = path.toLowerCase().split('/').slice(1)
  return segments.map((_, at) => `/${segments.slice(at).join('/')}`)
}
