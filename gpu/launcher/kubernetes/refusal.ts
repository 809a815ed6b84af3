import { isAbsolute } from 'node:path'
import type { KubernetesPool } from '../../../core/models/pools.ts'
import type { LaunchOptions } from '../launcher.ts'

/** Why an engine cannot run in a pod, as a sentence; undefined if it can. `self`: how this program is started. Pure. */
export function refusalOf(
  { modelId, argv, needs, sandbox }: Pick<LaunchOptions, 'modelId' | 'argv' | 'needs' | 'sandbox'>,
  { pool, volumes, self }: { pool: string; volumes: KubernetesPool['volumes']; self: readonly string[] },
): string | undefined {
  if (self.every((word, at) => argv[at] === word))
    return `The engine of '${modelId}' is part of infer, and pods of the pool '${pool}' do not have it. Use an engine with an image, such as llama-server or vllm.`
  if (argv.some(part => part.includes('{data_directory}')))
    return `The engine of '${modelId}' is a program in the data directory of this server, which pods of the pool '${pool}' do not have. Set its 'command' to that of an image in infer.yaml, or take the pool out of its 'pools'.`
  if (sandbox.required && sandbox.level !== 'none')
    return `The sandbox '${sandbox.level}' of '${modelId}' cannot be enforced in pods. Change 'sandbox' in infer.yaml, or let another pool run it.`
  if (needs?.image === undefined)
    return `It is not known which image has the program '${argv[0] ?? ''}' that runs '${modelId}'. Set 'image' of the pool '${pool}' in the 'pools' of the model, or 'images' of the pool.`
  const named = sandbox.read.filter(path => isAbsolute(path) && argv.slice(1).some(part => part.includes(path)))
  const outside = named.find(path => !volumes.some(({ mount_path: at }) => path === at || path.startsWith(`${at}/`)))
  return outside === undefined
    ? undefined
    : `Pods of the pool '${pool}' do not have ${outside}, which '${modelId}' needs. Add a volume with its 'mount_path' to the pool.`
}
