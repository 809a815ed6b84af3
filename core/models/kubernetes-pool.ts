import { z } from 'zod'
import { cardMemory, kindOf, limitFields } from './pool-fields.ts'

/** The other keys of the file in an example. */
const cluster = { pools: { team: { kind: 'kubernetes', card_memory: '80GiB' } } }

const withToleration = {
  pools: {
    team: {
      ...cluster.pools.team,
      tolerations: [{ key: 'nvidia.com/gpu', operator: 'Equal', value: 'yes', effect: 'NoSchedule' }],
    },
  },
}
const withVolumes = {
  pools: {
    team: {
      ...cluster.pools.team,
      volumes: [
        { host_path: '/srv/cache', mount_path: '/cache', read_only: false },
        { claim: 'models', mount_path: '/models' },
      ],
    },
  },
}

/** An image, as a container of a pod names it. */
export const ImageName = z
  .string()
  .regex(/^[\w][\w.:/@+-]{0,500}$/, 'must be an image such as vllm/vllm-openai:v0.32.0')

/** A name of an object of Kubernetes. */
const ObjectName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be a name such as models, in lower case')
const FilePath = z.string().regex(/^(\/|~\/)[^\0\n]*$/, 'must be an absolute path, or begin with ~/')
const MountPath = z.string().regex(/^\/[^\0\n:]+$/, 'must be an absolute path')
/** A key of a label or a taint, and a value of it. */
const LabelKey = z.string().regex(/^[\w./-]{1,317}$/, 'must be a key such as node.kubernetes.io/instance-type')
const LabelValue = z
  .string()
  .regex(/^[\w.-]{0,63}$/, 'must be at most 63 letters, digits, dots, hyphens and underscores')

const Toleration = z.strictObject({
  key: LabelKey.optional().meta({
    description: 'Key of the taint.',
    example: 'nvidia.com/gpu',
    absent: 'every key',
    with: withToleration,
  }),
  operator: z
    .enum(['Exists', 'Equal'])
    .default('Exists')
    .meta({ description: '`Equal` asks for the value too.', example: 'Equal', with: withToleration }),
  value: LabelValue.optional().meta({
    description: 'Value of the taint.',
    example: 'yes',
    absent: 'none',
    with: withToleration,
  }),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional().meta({
    description: 'Effect of the taint.',
    example: 'NoSchedule',
    absent: 'every effect',
    with: withToleration,
  }),
})

const Volume = z
  .strictObject({
    claim: ObjectName.optional().meta({
      description: 'Name of a persistent volume claim in the namespace. A volume has `claim` or `host_path`.',
      example: 'models',
      absent: 'none',
      with: withVolumes,
    }),
    host_path: MountPath.optional().meta({
      description: 'Path on the node.',
      example: '/srv/cache',
      absent: 'none',
      with: withVolumes,
    }),
    mount_path: MountPath.meta({
      description: 'Path at which engines see it. A model whose `source` is below it is read from there.',
      example: '/models',
      with: withVolumes,
    }),
    read_only: z.boolean().default(true).meta({
      description: 'Whether engines may only read it. A cache for downloads must be writable.',
      example: false,
      with: withVolumes,
    }),
  })
  .refine(({ claim, host_path }) => (claim === undefined) !== (host_path === undefined), {
    error: "must have either 'claim' or 'host_path'",
  })
  .refine(({ mount_path }) => !/^\/(run\/infer|dev)(\/|$)/.test(mount_path), {
    error: "cannot be mounted there: infer needs '/run/infer' and '/dev'",
    path: ['mount_path'],
  })

/** A pool whose engines are pods of a Kubernetes cluster. */
export const KubernetesPool = z.strictObject({
  kind: kindOf('kubernetes', cluster),
  kubeconfig: FilePath.optional().meta({
    description: '`kubernetes` only: file with the address of the cluster and the credentials of the server.',
    example: '/etc/infer/kubeconfig',
    with: cluster,
    absent: 'the service account of the pod in which the server runs, else KUBECONFIG, else ~/.kube/config',
  }),
  context: z.string().min(1).max(253).optional().meta({
    description: '`kubernetes` only: context of the kubeconfig.',
    example: 'gpu-cluster',
    with: cluster,
    absent: 'its current context',
  }),
  namespace: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the name of a namespace')
    .optional()
    .meta({
      description: '`kubernetes` only: namespace of the pods.',
      example: 'inference',
      with: cluster,
      absent: 'that of the service account or of the context, else default',
    }),
  resource: z
    .string()
    .regex(/^[a-z0-9.-]+\/[A-Za-z0-9._-]+$/, 'must be a resource such as nvidia.com/gpu')
    .default('nvidia.com/gpu')
    .meta({
      description: '`kubernetes` only: resource that stands for one GPU.',
      example: 'amd.com/gpu',
      with: cluster,
    }),
  card_memory: cardMemory(cluster),
  node_selector: z
    .record(LabelKey, LabelValue)
    .default({})
    .meta({
      description: '`kubernetes` only: labels that a node must have.',
      example: { 'nvidia.com/gpu.product': 'NVIDIA-H100-80GB-HBM3' },
      with: cluster,
    }),
  tolerations: z
    .array(Toleration)
    .max(50)
    .default([])
    .meta({
      description: '`kubernetes` only: taints of nodes that the pods tolerate.',
      example: [{ key: 'nvidia.com/gpu', effect: 'NoSchedule' }],
      with: cluster,
    }),
  service_account: ObjectName.optional().meta({
    description: '`kubernetes` only: service account of the pods. They get no token of it.',
    example: 'engines',
    with: cluster,
    absent: 'the default one of the namespace',
  }),
  images: z
    .record(z.string().min(1), ImageName)
    .default({})
    .meta({
      description: '`kubernetes` only: image of each engine. A model may have another for this pool.',
      example: { vllm: 'vllm/vllm-openai:v0.32.0' },
      with: cluster,
    }),
  image_pull_secrets: z
    .array(ObjectName)
    .max(20)
    .default([])
    .meta({
      description: '`kubernetes` only: secrets of the namespace with which images are pulled.',
      example: ['registry'],
      with: cluster,
    }),
  wrapper_image: ImageName.default('python:3-alpine').meta({
    description:
      '`kubernetes` only: an image with Python 3.7 or later, for the container that lets only this server reach an engine.',
    example: 'registry.example.com/python:3.13',
    with: cluster,
  }),
  volumes: z
    .array(Volume)
    .max(20)
    .default([])
    .meta({
      description: '`kubernetes` only: volumes with models or caches that engines see.',
      example: [{ claim: 'models', mount_path: '/models' }],
      with: cluster,
    }),
  ...limitFields(cluster),
})
export type KubernetesPool = z.output<typeof KubernetesPool>
