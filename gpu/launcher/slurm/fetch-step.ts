import { partsOf } from '../../../core/models/gguf-parts.ts'
import { repositoryIn } from '../../../core/models/hub/layout.ts'
import { snapshotFilesOf, snapshotOf } from '../../../core/models/hub/snapshot.ts'

/** What a download on a node needs of the server's environment. */
const passed = /^(HF_ENDPOINT|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY)$/

/** A repository of a hub, as engines take it: `owner/name`. */
const hubId = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/

/**
 * The command of an engine behind `infer model fetch`, which brings its model to the cache of the node and then becomes it; the
 * command alone where the model is of no hub. `infer`: the words that start infer there.
 */
export async function behindFetch(
  argv: readonly string[],
  { infer, source, cache }: { infer: readonly string[]; source: string | undefined; cache: string },
): Promise<readonly string[]> {
  const snapshot = source === undefined ? undefined : snapshotOf(source)
  if (!snapshot && !(source !== undefined && hubId.test(source))) return argv
  const own = snapshot ? await repositoryOf(snapshot, argv) : [`hf:${source}`]
  return [...infer, 'model', 'fetch', ...own, '--cache', cache, '--', ...argv]
}

async function repositoryOf(
  { folder, commit, file }: NonNullable<ReturnType<typeof snapshotOf>>,
  argv: readonly string[],
): Promise<string[]> {
  const known = await snapshotFilesOf(folder, argv)
  const names = known?.files.map(({ name }) => name) ?? (file === null ? [] : partsOf(file))
  return [`hf:${repositoryIn(folder)}@${commit}`, ...names.flatMap(name => ['--file', name]), '--at', folder]
}

/** The variables that the download needs. Engines are told to use no network; the engine behind it is told again. */
export const fetchEnvironment = (host: Readonly<Record<string, string | undefined>>): Record<string, string> => ({
  ...(Object.fromEntries(
    Object.entries(host).filter(([name, value]) => passed.test(name) && value !== undefined),
  ) as Record<string, string>),
  HF_HUB_OFFLINE: '0',
})
