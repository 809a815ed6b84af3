import { generationTaskOf, type InputMedium, type Task } from '../../schemas/task.ts'
import { type Graph, isLink } from './graph.ts'
import { type InputTarget, targetText } from './settings.ts'

/** A mapping that is proposed for a graph. */
export interface MappingProposal {
  task: Task
  inputs: Record<string, string | string[]>
  /** Nodes that save the result; empty if there is none. */
  outputs: string[]
  /** Parameters of the task for which no input was found. */
  missing: string[]
}

/** Links between a sampler and its texts, at most. */
const maxDepth = 20
const textInputs = ['text', 'text_g', 'text_l', 't5xxl', 'clip_l', 'prompt', 'value', 'string']
const videoSaver = /video|webm|webp.*anim|vhs_videocombine/i

/** Proposes how requests are written into a graph, by the usual nodes and the names of their inputs. Pure. */
export function proposeMapping(graph: Graph): MappingProposal {
  const nodes = Object.entries(graph)
  const literals = (names: readonly string[], type: 'number' | 'string', of = /./): InputTarget[] =>
    nodes.flatMap(([node, { class_type, inputs }]) =>
      of.test(class_type)
        ? names.flatMap(input => (typeof inputs[input] === type ? [{ node, input }] : literalBehind(node, input, type)))
        : [],
    )

  /** The value of a linked input is set in another node. */
  function literalBehind(node: string, input: string, type: 'number' | 'string'): InputTarget[] {
    const value = graph[node]?.inputs[input]
    const from = isLink(value) ? graph[value[0]] : undefined
    const name = from && [input, 'value', 'int', 'float', 'seed'].find(one => typeof from.inputs[one] === type)
    return name === undefined ? [] : [{ node: (value as [string, number])[0], input: name }]
  }

  /** Follows links upstream until a node with a text of its own. */
  function textsBehind(node: string, input: string): InputTarget[] {
    let level = [graph[node]?.inputs[input]]
    for (let depth = 0; depth < maxDepth && level.length > 0; depth++) {
      const ids = level.flatMap(value => (isLink(value) && graph[value[0]] ? [value[0]] : []))
      const found = ids.flatMap(id =>
        textInputs.flatMap(name => (typeof graph[id]!.inputs[name] === 'string' ? [{ node: id, input: name }] : [])),
      )
      if (found.length > 0) return found
      // Nodes with both conditionings pass on each at its own output.
      level = ids.flatMap(id => {
        const { inputs } = graph[id]!
        return isLink(inputs[input]) ? [inputs[input]] : Object.values(inputs)
      })
    }
    return []
  }

  function conditioning(input: 'positive' | 'negative' | 'conditioning'): InputTarget[] {
    for (const [id, { inputs }] of nodes) if (isLink(inputs[input])) return textsBehind(id, input)
    return []
  }

  const savers = nodes.filter(([, { inputs }]) => 'filename_prefix' in inputs)
  const videoSavers = savers.filter(([, { class_type }]) => videoSaver.test(class_type))
  const loaded = (of: RegExp, names: readonly string[]) => literals(names, 'string', of)
  const images = loaded(/^LoadImage(?!Mask)|^LoadImageFromPath$/i, ['image'])
  const mask = loaded(/^LoadImageMask$/i, ['image']).slice(0, 1)
  const video = loaded(/LoadVideo/i, ['video', 'file']).slice(0, 1)
  const audio = loaded(/LoadAudio/i, ['audio', 'audio_file']).slice(0, 1)
  const isVideo = videoSavers.length > 0
  const isMasked = !isVideo && images.length > 0 && mask.length > 0
  const isInterpolated = isVideo && video.length > 0
  const speaks = isVideo && !isInterpolated && images.length > 0 && audio.length > 0
  const media: InputMedium[] = isInterpolated
    ? ['video']
    : images.length === 0
      ? []
      : ['image', ...(isMasked ? (['mask'] as const) : speaks ? (['audio'] as const) : [])]
  const task = generationTaskOf(isVideo ? 'video' : 'image', media)

  const positive = [conditioning('positive'), conditioning('conditioning'), loaded(/TextEncode/i, textInputs)].find(
    found => found.length > 0,
  )
  const prompts = new Set(positive?.map(targetText))
  const canvas = /^Empty|Latent|ToVideo|TextToVideo|ImageToVideo/i
  const sides = (name: string): InputTarget[] =>
    [literals([name], 'number', canvas), literals([name], 'number', /Scale|Resize/i)].find(one => one.length > 0) ?? []
  const guidance = literals(['guidance'], 'number')
  const found: [name: string, targets: readonly InputTarget[]][] = [
    ['prompt', positive ?? []],
    // A negative conditioning that is made from the positive one has no text of its own.
    ['negative_prompt', conditioning('negative').filter(target => !prompts.has(targetText(target)))],
    ['seed', literals(['seed', 'noise_seed'], 'number')],
    ['width', sides('width')],
    ['height', sides('height')],
    ...(isVideo ? [] : ([['num_images', literals(['batch_size'], 'number', canvas)]] as typeof found)),
    ['num_inference_steps', literals(['steps'], 'number')],
    ['guidance_scale', guidance.length > 0 ? guidance : literals(['cfg'], 'number')],
    ...(images.length > 0 && !isVideo ? ([['strength', literals(['denoise'], 'number')]] as typeof found) : []),
    ...(isVideo
      ? ([
          ['num_frames', literals(['length', 'num_frames', 'video_frames'], 'number')],
          ['fps', literals(['fps', 'frame_rate'], 'number')],
        ] as typeof found)
      : []),
    ...images
      .slice(0, 16)
      .map((target, at): [string, InputTarget[]] => [at === 0 ? 'image' : `image_${at + 1}`, [target]]),
    ...(isMasked ? ([['mask', mask]] as typeof found) : []),
    ...(isInterpolated ? ([['video', video]] as typeof found) : []),
    ...(speaks ? ([['audio', audio]] as typeof found) : []),
  ]
  return {
    task,
    inputs: Object.fromEntries(
      found.filter(([, targets]) => targets.length > 0).map(([name, of]) => [name, write(of)]),
    ),
    outputs: (isVideo ? videoSavers : savers).map(([id]) => id),
    missing: found.filter(([, targets]) => targets.length === 0).map(([name]) => name),
  }
}

function write(targets: readonly InputTarget[]): string | string[] {
  const texts = [...new Set(targets.map(targetText))].slice(0, 32)
  return texts.length === 1 ? texts[0]! : texts
}

/** Returns the model files that the nodes of a graph name, such as `sd_xl_base_1.0.safetensors`. */
export const modelFilesIn = (graph: Graph): string[] => [
  ...new Set(
    Object.values(graph)
      .flatMap(({ inputs }) => Object.values(inputs))
      .filter(
        (value): value is string => typeof value === 'string' && /\.(safetensors|ckpt|pth?|sft|gguf)$/i.test(value),
      ),
  ),
]
