import { open } from 'node:fs/promises'
import { imageKindOf } from '../../cpu/image-kind.ts'
import { invalid } from '../../failure.ts'
import type { EngineField, EngineRoute } from '../../models/engine-traits.ts'
import type { RunReport } from '../run-job.ts'
import type { FormFile } from './form-body.ts'
import type { EngineInputs, GenerationCall } from './generation-call.ts'

export type FieldValue = string | number | boolean | object

/** Returns the fields of a request that OpenAI does not have, as far as the engine takes them. */
export function furtherFields(
  { inputs, folder }: GenerationCall,
  { fields = [] }: EngineRoute,
): Record<string, FieldValue> {
  const values: Partial<Record<EngineField, FieldValue | null>> = {
    response_format: 'b64_json',
    output_format: inputs.output_format,
    seed: inputs.seed,
    negative_prompt: inputs.negative_prompt,
    num_inference_steps: inputs.num_inference_steps,
    guidance_scale: inputs.guidance_scale,
    num_frames: inputs.num_frames,
    fps: inputs.fps,
    strength: inputs.image === null ? null : inputs.strength,
    output_path: folder,
  }
  const known = fields.flatMap((name): [string, FieldValue][] => {
    const value = values[name]
    return value === null || value === undefined ? [] : [[name, value]]
  })
  const extra = Object.entries(inputs.extra).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries([...known, ...extra]) as Record<string, FieldValue>
}

export const openaiSize = ({ width, height }: Pick<EngineInputs, 'width' | 'height'>): string => `${width}x${height}`

/** Returns the fields as texts of a form. */
export const formFields = (fields: Record<string, FieldValue>): [name: string, value: string][] =>
  Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === 'object' ? JSON.stringify(value) : String(value),
  ])

/** Bytes that tell the format of an image. */
const headBytes = 64

/** Returns images on the disk as files of a form. */
export const imageFiles = (images: readonly (readonly [name: string, path: string])[]): Promise<FormFile[]> =>
  Promise.all(
    images.map(async ([name, path], at) => {
      await using file = await open(path)
      const { size } = await file.stat()
      const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0)
      const kind = imageKindOf(buffer.subarray(0, bytesRead))
      const format = 'format' in kind ? kind.format : 'png'
      return { name, filename: `image-${at + 1}.${format}`, contentType: `image/${format}`, path, bytes: size }
    }),
  )

/**
 * Throws Failure `unsupported_parameter` for a negative prompt that the engine would not get, and logs that a seed has no
 * effect.
 */
export function checkFields(
  modelId: string,
  { inputs }: GenerationCall,
  { fields = [] }: EngineRoute,
  report: RunReport,
): void {
  if (inputs.negative_prompt && !fields.includes('negative_prompt'))
    throw invalid(
      'negative_prompt',
      `The engine of '${modelId}' takes no 'negative_prompt'. Leave it out, or say in 'prompt' what to avoid.`,
      'unsupported_parameter',
    )
  if (!fields.includes('seed')) report.log('INFO', 'The engine takes no seed, so the same seed gives another result.')
}
