import { jsonOf, objectOf } from '../../json.ts'
import type { PricedImage } from '../../models/price.ts'
import { noUsage, type Usage } from '../../usage.ts'
import { expectedGpuMs, type Metering } from '../metering.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { ResultFile } from './result.ts'

/** The size and the quality that the request asked for: engines may round the size. */
export const pricedImage = ({ width, height, quality }: Pick<GenerationInputs, 'width' | 'height' | 'quality'>) =>
  ({ size: `${width}x${height}`, quality }) satisfies PricedImage

/** Meters images by their number, size and quality. */
export const imageMetering: Metering = {
  measures: ['images'],
  estimate({ inputs }) {
    const { num_images } = inputs as Partial<GenerationInputs>
    return {
      usage: { ...noUsage, images: num_images ?? 1, gpuMs: expectedGpuMs },
      image: pricedImage(inputs as unknown as GenerationInputs),
    }
  },
  work: workOfInputs,
}

/** Meters videos by their length. */
export const videoMetering: Metering = {
  measures: ['videoMs'],
  estimate({ inputs }) {
    const { num_frames = 1, fps = 16 } = inputs as Partial<GenerationInputs>
    return { usage: { ...noUsage, videoMs: Math.ceil((1000 * num_frames) / fps), gpuMs: expectedGpuMs } }
  },
  work: workOfInputs,
}

/** Returns the usage of a generation: its images, or the length of its video. */
export function usageOfFiles(kind: 'images' | 'video', inputs: GenerationInputs, files: readonly ResultFile[]): Usage {
  if (kind === 'images') return { ...noUsage, images: files.length }
  const [video] = files
  const seconds = video?.duration ?? (video?.num_frames ?? inputs.num_frames) / (video?.fps ?? inputs.fps)
  return { ...noUsage, videoMs: Math.round(1000 * seconds) }
}

const factors = ['width', 'height', 'num_images', 'num_frames', 'num_inference_steps'] as const

/** Returns pixels × images or frames × steps. The inputs must have all defaults. */
function workOfInputs(inputs: string | null): number | null {
  const known = objectOf(jsonOf(inputs ?? ''))
  if (!factors.some(name => name in known)) return null
  let work = 1
  for (const name of factors) {
    const factor = known[name] ?? 1
    if (typeof factor !== 'number' || !(factor > 0) || !Number.isFinite(factor)) return null
    work *= factor
  }
  return work
}
