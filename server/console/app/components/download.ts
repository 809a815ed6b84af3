import { send } from '../api/client.ts'

/** Lets the browser save some bytes as a file. */
function downloadBlob(name: string, content: Blob): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** Lets the browser save a text as a file. */
export const downloadText = (name: string, text: string, type: string): void =>
  downloadBlob(name, new Blob([text], { type }))

/** Lets the browser save a stored file. A link could not: the session counts only for requests of the console. */
export async function downloadFile(id: string, name: string): Promise<void> {
  const answer = await send(`/std/v1/files/${encodeURIComponent(id)}/content`)
  downloadBlob(name, await answer.blob())
}

/** The letters and digits of a name with dashes between them, for the name of a file; empty if there are none. */
export const fileNameOf = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 80)

/** Lets the browser save a workflow. */
export const downloadWorkflow = (name: string, source: string): void =>
  downloadText(`${fileNameOf(name.toLowerCase()) || 'workflow'}.yaml`, source, 'application/yaml')
