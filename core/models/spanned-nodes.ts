import { z } from 'zod'
import { type Pools, poolsOf } from './pools.ts'

/** The other keys of the file in an example of a model that spans nodes. */
const withNodes = {
  pools: { lab: { kind: 'slurm', card_memory: '80GiB' } },
  models: [{ id: 'deepseek-r1', engine: 'vllm', source: '/shared/models/deepseek-r1', devices: 8, pools: ['lab'] }],
}

/** The key `nodes` of a model. */
export const NodeCount = z.int().min(1).max(64).optional().meta({
  description:
    '`vllm` only: nodes of a Slurm or Kubernetes cluster that one engine spans. `devices` is then the number of GPUs on each of them. Layers are divided among the nodes, and each layer among the GPUs of a node, unless `args` says otherwise.',
  unit: 'nodes',
  example: 2,
  with: withNodes,
  absent: 'one node',
})

/** The nodes that an engine of a model spans. */
export const nodesOf = ({ nodes = 1 }: { nodes?: number | undefined }): number => nodes

/** What is wrong with a model that spans nodes, as a sentence, and the key that is to be changed; undefined if nothing is. */
export function nodesFault(
  model: Parameters<typeof poolsOf>[0] & { id: string; devices: unknown; nodes?: number | undefined },
  pools: Pools,
): { key: 'nodes' | 'devices' | 'pools'; message: string } | undefined {
  const nodes = nodesOf(model)
  if (nodes === 1) return undefined
  const fault = (key: 'nodes' | 'devices' | 'pools', message: string) => ({
    key,
    message: `Model '${model.id}': ${message}`,
  })
  const wrong = poolsOf(model).find(({ pool }) => !/^(slurm|kubernetes)$/.test(pools[pool]?.kind ?? ''))
  if (wrong)
    return fault(
      model.pools === undefined ? 'nodes' : 'pools',
      `it spans ${nodes} nodes, and '${wrong.pool}' is no cluster. List only pools of the kind slurm or kubernetes in 'pools', or remove 'nodes'.`,
    )
  if (typeof model.devices !== 'number')
    return fault('devices', `it spans ${nodes} nodes, so 'devices' must be the number of GPUs on each: devices: 8.`)
  return undefined
}
