/** Lets the browser save a text as a file. */
export function downloadText(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** Lets the browser save a workflow. Its file has the letters and digits of its name, with dashes between them. */
export function downloadWorkflow(name: string, source: string): void {
  const words = name.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '')
  downloadText(`${words.toLowerCase().slice(0, 80) || 'workflow'}.yaml`, source, 'application/yaml')
}
