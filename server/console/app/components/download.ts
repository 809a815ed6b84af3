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

/** Lets the browser save a workflow. Its file has the letters and digits of its name, with dashes between them. */
export function downloadWorkflow(name: string, source: string): void {
  const words = name.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '')
  downloadText(`${words.toLowerCase().slice(0, 80) || 'workflow'}.yaml`, source, 'application/yaml')
}
