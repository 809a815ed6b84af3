/** Addresses at which this page can show files that it knows, by their id. */
const known = new Map<string, string>()
/** More are forgotten: each may hold a file in the memory of the browser. */
const maxKnown = 50

export function rememberPreview(id: string, url: string): void {
  known.set(id, url)
  if (known.size <= maxKnown) return
  const [oldest, old] = known.entries().next().value!
  known.delete(oldest)
  if (old.startsWith('blob:')) URL.revokeObjectURL(old)
}

/** Returns where a file can be shown: a file that was chosen here or comes from the library; undefined for others. */
export const previewOf = (value: string): string | undefined =>
  known.get(value) ?? (/^(data:image\/|\/files\/)/.test(value) ? value : undefined)
