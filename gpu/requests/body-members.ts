/** More than any name or list of adapters at the start of a body has, bytes. */
const headLength = 600

/** The beginning of a body, where infer writes what engines choose by. */
export const headOf = (body: string | Uint8Array): string =>
  typeof body === 'string'
    ? body.slice(0, headLength)
    : Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, headLength)).toString('utf8')

/** Adds members, as JSON text, to the start of a JSON object that has at least one. */
export const withMembers = (body: string | Uint8Array, members: string): string | Uint8Array =>
  typeof body === 'string'
    ? `{${members},${body.slice(1)}`
    : Buffer.concat([Buffer.from(`{${members},`), body.subarray(1)])
