/** No real model has more. */
const maxParts = 999

/** Returns the names of all files of a model in several GGUF files, by the name of one of them; any other name alone. */
export function partsOf(name: string): string[] {
  const [suffix, , count, end] = /-(\d{5})-of-(\d{5})(\.gguf)$/i.exec(name) ?? []
  const parts = Number(count)
  if (suffix === undefined || parts < 1 || parts > maxParts) return [name]
  const begin = name.slice(0, -suffix.length)
  return Array.from({ length: parts }, (_, at) => `${begin}-${String(at + 1).padStart(5, '0')}-of-${count}${end}`)
}
