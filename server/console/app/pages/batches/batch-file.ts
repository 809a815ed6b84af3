import { send } from '../../api/client.ts'

/** Bytes that are read of a file to find its first line. */
const beginning = 65_536

/** The endpoint that the first line of a batch names; undefined if it is no such line. */
export function endpointIn(text: string): string | undefined {
  const line = text.split('\n').find(one => one.trim() !== '')
  // A line that is longer than what was read is not whole: its `url` stands near its beginning.
  return /"url"\s*:\s*"([^"\\]+)"/.exec(line ?? '')?.[1]
}

/** The beginning of a file of this computer, or of a stored one by its id. */
export async function beginningOf(file: File | string): Promise<string> {
  if (typeof file !== 'string') return await file.slice(0, beginning).text()
  const headers = { range: `bytes=0-${beginning - 1}` }
  return await (await send(`/std/v1/files/${encodeURIComponent(file)}/content`, { headers })).text()
}
