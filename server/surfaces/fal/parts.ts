const form = /^\/multipart\/([\w-]{1,4000})\/(\d{1,5}|complete)$/
const queryText = /^[\w=&%.+*-]*$/

/**
 * Returns the download URL with `&to=` at its end. fal's Python client appends `/multipart/<upload>/<part>` to that
 * URL, which is signed and so has a query: the appended text becomes the last parameter of the query.
 */
export const readableAddress = (readUrl: string): string => `${readUrl}&to=`

/** Returns the id of an upload in parts: the encoded query of the signed upload URL. */
export const uploadIdOf = (uploadUrl: string): string =>
  Buffer.from(uploadUrl.slice(uploadUrl.indexOf('?') + 1)).toString('base64url')

/** Returns the URL of the route that stores the part or joins the parts. Returns any other URL unchanged. */
export function partAddress(url: string): string {
  const at = url.indexOf('?')
  if (!url.startsWith('/files/') || !url.includes('&to=', at)) return url
  const [, upload, what] = form.exec(new URLSearchParams(url.slice(at + 1)).get('to') ?? '') ?? []
  if (upload === undefined) return url
  const query = Buffer.from(upload, 'base64url').toString('latin1')
  return queryText.test(query) ? `${url.slice(0, at)}/${what}?${query}` : url
}
