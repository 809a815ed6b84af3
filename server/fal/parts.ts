const form = /^\/multipart\/([\w-]{1,4000})\/(\d{1,5}|complete)$/
const queryText = /^[\w=&%.+*-]*$/

/**
 * fal's Python client appends `/multipart/<upload>/<part>` to the address under which the file will be read. That
 * address is signed and so has a query; it ends in `&to=`, by which the appended text becomes the last parameter of the
 * query.
 */
export const readableAddress = (readUrl: string): string => `${readUrl}&to=`

/** The name of an upload in parts: the query of the signed address to which the file can be sent. */
export const uploadIdOf = (uploadUrl: string): string =>
  Buffer.from(uploadUrl.slice(uploadUrl.indexOf('?') + 1)).toString('base64url')

/** The URL of the route that takes the part, or joins all parts, of an address so made; any other URL as it is. */
export function partAddress(url: string): string {
  const at = url.indexOf('?')
  if (!url.startsWith('/files/') || !url.includes('&to=', at)) return url
  const [, upload, what] = form.exec(new URLSearchParams(url.slice(at + 1)).get('to') ?? '') ?? []
  if (upload === undefined) return url
  const query = Buffer.from(upload, 'base64url').toString('latin1')
  return queryText.test(query) ? `${url.slice(0, at)}/${what}?${query}` : url
}
