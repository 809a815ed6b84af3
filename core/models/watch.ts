import { type FSWatcher, lstatSync, realpathSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

/**
 * Calls back when a file may have changed, a moment (`settleMs`) after the last sign of it, so that who writes in
 * pieces is not read in the middle. It is the folder that is watched: editors, and whoever wants to be safe, put
 * another file in the place of the old one. A link is followed, also one that leads through a link that is swapped, as
 * Kubernetes does with the files of a ConfigMap. `failed` is called when nothing more will be noticed.
 */
export function watchFile({
  path,
  settleMs,
  changed,
  failed,
}: {
  path: string
  settleMs: number
  changed: () => void
  failed: (cause: unknown) => void
}): { close(): void } {
  let timer: NodeJS.Timeout | undefined
  let watchers = new Map<string, FSWatcher>()

  function noticed(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      follow()
      changed()
    }, settleMs)
  }

  /** Watches where the file is now: the folder of its name, and the one that a link leads to. */
  function follow(): void {
    const before = watchers
    watchers = new Map()
    try {
      for (const [folder, names] of placesOf(path)) {
        const key = `${folder}\n${[...names].join('\n')}`
        const watcher =
          before.get(key) ??
          watch(folder, { persistent: false }, (_, name) => {
            if (name === null || names.has(name)) noticed()
          }).on('error', failed)
        watchers.set(key, watcher)
        before.delete(key)
      }
    } catch (cause) {
      failed(cause)
    }
    for (const watcher of before.values()) watcher.close()
  }

  follow()
  return {
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

/** Folders, and the names in them of which an event may mean that the file is another. */
function placesOf(path: string): Map<string, Set<string>> {
  const places = new Map([[dirname(path), new Set([basename(path)])]])
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    places.get(dirname(path))!.add('..data')
    try {
      const real = realpathSync(path)
      const folder = dirname(real)
      places.set(folder, new Set([...(places.get(folder) ?? []), basename(real)]))
    } catch {
      // A link that leads nowhere now may lead somewhere at the next sign.
    }
  }
  return places
}
