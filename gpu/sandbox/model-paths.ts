const partName = /-(\d{5})-of-(\d{5})\.gguf$/i

/** In a hub's cache a model is a folder of links into its own folder of contents. */
const hubFolder = /^(\/.*?\/models--[^/]+)\/snapshots\//

/** The paths that a model's files take, from the one path that its configuration names. Pure. */
export function modelPaths(source: string): string[] {
  const [, hub] = hubFolder.exec(source) ?? []
  if (hub !== undefined) return [hub]
  const [, , count] = partName.exec(source) ?? []
  if (count === undefined) return [source]
  // More parts than this are no model.
  return Array.from({ length: Math.min(Number(count), 1000) }, (_, at) =>
    source.replace(partName, `-${String(at + 1).padStart(5, '0')}-of-${count}.gguf`),
  )
}
