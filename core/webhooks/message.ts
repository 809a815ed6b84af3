/** Bytes of the object in a message. A larger one is replaced by its id and URL. */
const maxObjectBytes = 20_000

/** Returns the body of a message as JSON text; `data` is JSON text, `at` in epoch milliseconds. */
export function messageText({ id, type, at, data }: { id: string; type: string; at: number; data: string }): string {
  const head = JSON.stringify({
    id,
    object: 'event',
    type,
    created_at: Math.floor(at / 1000),
    timestamp: new Date(at).toISOString(),
  })
  return `${head.slice(0, -1)},"data":${data}}`
}

/** Returns the object if it is short enough, else its short form. */
export const boundedData = (whole: string, short: object): string =>
  Buffer.byteLength(whole) <= maxObjectBytes ? whole : JSON.stringify(short)
