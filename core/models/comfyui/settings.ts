import { z } from 'zod'
import { tasksBy } from '../../schemas/task.ts'

/** Inputs of a job that can be written into a graph. Further images of an edit are `image_2` to `image_16`. */
export const graphInputs = [
  'prompt',
  'negative_prompt',
  'seed',
  'width',
  'height',
  'num_images',
  'num_inference_steps',
  'guidance_scale',
  'strength',
  'num_frames',
  'fps',
  'image',
  'mask',
  'video',
  'audio',
] as const
export type GraphInput = (typeof graphInputs)[number]

const targetPattern = /^([^.\s]+)\.inputs\.(\S+)$/
const Target = z.string().regex(targetPattern, 'Write <node>.inputs.<input> as in the graph, such as 3.inputs.seed.')

/** The other keys of the model in each example. */
const graph = {
  id: 'flux-dev',
  engine: 'comfyui',
  command: ['/opt/ComfyUI/venv/bin/python', '/opt/ComfyUI/main.py'],
  source: '/srv/workflows/flux-dev.json',
  tasks: tasksBy('create-image'),
}

/** The `comfyui` key of a model: how requests become the inputs of a ComfyUI graph. */
export const ComfyuiSettings = z
  .strictObject({
    inputs: z
      .record(z.string(), z.union([Target, z.array(Target).min(1).max(32)]))
      .default({})
      .meta({
        description: `Input of a node for each parameter of requests, as \`<node>.inputs.<input>\` of the graph, or a list of inputs that get the same value. Parameters: ${graphInputs.join(', ')}, \`image_2\` to \`image_16\`, and those in \`extra_params\`. A request that sets a parameter which is not listed is refused; for a parameter that it does not set, the graph keeps its own value.`,
        example: { prompt: '6.inputs.text', seed: '3.inputs.seed' },
        with: graph,
      }),
    outputs: z
      .array(z.string().min(1))
      .min(1)
      .max(16)
      .optional()
      .meta({
        description: 'Nodes whose files are the result, in this order.',
        example: ['9'],
        with: graph,
        absent: 'every node that saves files',
      }),
  })
  .optional()
  .meta({
    description:
      'How requests are written into a ComfyUI graph: `source` is the graph in API format. For the engine comfyui, and for custom and remote where the server is a ComfyUI.',
    example: { inputs: { prompt: '6.inputs.text', seed: '3.inputs.seed' }, outputs: ['9'] },
    with: graph,
    absent: 'none; required for comfyui',
  })
export type ComfyuiSettings = NonNullable<z.output<typeof ComfyuiSettings>>

/** One input of one node. */
export interface InputTarget {
  node: string
  input: string
}

/** Returns the node inputs that get the value of a parameter; empty if it is not mapped. */
export function inputTargets({ inputs }: Pick<ComfyuiSettings, 'inputs'>, name: string): InputTarget[] {
  const written = Object.hasOwn(inputs, name) ? inputs[name]! : []
  return (typeof written === 'string' ? [written] : written).map(text => {
    const [, node, input] = targetPattern.exec(text)!
    return { node: node!, input: input! }
  })
}

export const targetText = ({ node, input }: InputTarget): string => `${node}.inputs.${input}`

/** Returns how many images one request may have: `image`, `image_2` and so on without a gap. */
export function imageCount({ inputs }: Pick<ComfyuiSettings, 'inputs'>): number {
  let count = 1
  while (Object.hasOwn(inputs, `image_${count + 1}`)) count++
  return count
}

export const isFurtherImage = (name: string): boolean => /^image_([2-9]|1[0-6])$/.test(name)
