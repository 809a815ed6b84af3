const partName = /-(\d{5})-of-(\d{5})\.gguf$/i

/** In a hub's cache, `snapshots` contains links to files in the same model folder. */
const hubFolder = /^(\/.*?\/models--[^/]+)\/snapshots\//

/** Returns the paths of all files of a model, given the path in its configuration. Pure. */
export function modelPaths(source: string): string[] {
  const [, hub] = hubFolder.exec(source) ?? []
  if (hub !== undefined) return [hub]
  const [, , count] = partName.exec(source) ?? []
  if (count === undefined) return [source]
  // No real model has more than 1000 parts.
  return Array.from({ length: Math.min(Number(count), 1000) }, (_, at) =>
    source.replace(partName, `-${String(at + 1).padStart(5, '0')}-of-${count}.gguf`),
  )
}
