/**
 * Returns the address of a file of this server without its origin: the answer may name the public address, and the page
 * loads nothing from another origin than its own. An address of another server is returned unchanged.
 */
export function ownUrl(url: string): string {
  if (!/^https?:/.test(url)) return url
  const { pathname, search } = new URL(url)
  return pathname.startsWith('/files/') ? pathname + search : url
}

/** The address of a model's page in the console. Ids contain `/`. */
export const modelHref = (id: string, part = ''): string =>
  `/models/details/${id.split('/').map(encodeURIComponent).join('/')}${part}`

/**
 * The page of an id that a person has, such as one from a log: of a job, a request or an execution. Undefined for other
 * text, also for words that only begin as an id does.
 */
export function pageOfId(text: string): string | undefined {
  const [, kind, rest] = /^(job|q|exec)_(\w{26})$/.exec(text) ?? []
  if (kind === undefined) return undefined
  return kind === 'exec' ? `/executions/${text}` : `/jobs/job_${rest}`
}
