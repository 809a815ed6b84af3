/** An id of 20 letters and digits. Browsers offer random UUIDs only to pages of https and of this machine. */
export const randomId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(20)), byte => (byte % 36).toString(36)).join('')
