import { invalidValue } from '../../failure.ts'

/** A model on a hub. */
export interface HubReference {
  /** `owner/name`. */
  repository: string
  /** A branch, a tag or a commit. */
  revision: string
  /** A path in the repository, the name of a file, or a quantization; null: infer chooses the file. */
  file: string | null
}

/** Hosts whose URLs are read as references, besides the configured endpoint. */
const hubHosts = ['huggingface.co', 'www.huggingface.co', 'hf.co']

/**
 * Parses `hf:owner/name`, `hf:owner/name:file`, `hf:owner/name@revision:file`, or the URL of a repository or file on the
 * hub. Undefined for anything else.
 * Throws Failure `invalid_value` for a text that begins like a reference and is not valid.
 */
export function parseHubReference(text: string, endpoint: string): HubReference | undefined {
  if (text.startsWith('hf:')) {
    const [, repository, revision, file] = /^hf:([^:@]*)(?:@([^:]*))?(?::(.*))?$/s.exec(text)!
    return checked({ repository: repository!, revision: revision ?? 'main', file: file ?? null }, text)
  }
  if (!/^https?:\/\//i.test(text)) return undefined
  if (!URL.canParse(text)) throw wrong(text, 'is not a valid address')
  const { host, pathname } = new URL(text)
  const base = new URL(endpoint)
  if (host !== base.host && !hubHosts.includes(host)) return undefined
  const path = host === base.host ? pathname.slice(base.pathname.replace(/\/+$/, '').length) : pathname
  const [owner, name, kind, revision, ...rest] = path.split('/').filter(Boolean).map(decoded)
  if (owner === undefined || name === undefined || ['datasets', 'spaces', 'api'].includes(owner))
    throw wrong(text, 'is not the address of a model')
  const file = rest.length > 0 && /^(resolve|blob|raw)$/.test(kind ?? '') ? rest.join('/') : null
  if (kind !== undefined && kind !== 'tree' && file === null)
    throw wrong(text, 'is not the address of a model or a file')
  return checked({ repository: `${owner}/${name}`, revision: revision ?? 'main', file }, text)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Source: the rules for names of repositories in the hub's own tools. */
function checked(reference: HubReference, text: string): HubReference {
  const { repository, revision, file } = reference
  const parts = repository.split('/')
  const isValid = (part: string) => /^[A-Za-z0-9_]([A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?$/.test(part)
  if (parts.length > 2 || !parts.every(isValid) || /--|\.\.|\.git$/.test(repository))
    throw wrong(text, 'is not a valid name of a repository')
  if (!/^[A-Za-z0-9][A-Za-z0-9._/-]{0,200}$/.test(revision) || /\.\.|\/\/|\/$/.test(revision))
    throw wrong(text, 'has an invalid revision')
  if (file === '') throw wrong(text, 'ends in a colon without a file')
  return reference
}

const wrong = (text: string, what: string) =>
  invalidValue(`'${text}' ${what}. Write it as hf:owner/name or hf:owner/name:file.gguf.`)
