import { z } from 'zod'
import { tasksBy } from '../schemas/task.ts'

/** The other keys of the model in each example. */
const python = { id: 'flux-dev', engine: 'python', source: '/models/flux-dev', tasks: tasksBy('create-image') }

/** Keys of a model for the engine `python`. Other engines refuse them. */
export const pythonFields = {
  environment: z
    .string()
    .regex(/^(\/[^\0\n]*[^/\0\n]|[A-Za-z0-9][A-Za-z0-9._-]*)$/, 'Write a name such as speech, or an absolute path.')
    .optional()
    .meta({
      description:
        'Python environment that has the libraries of the model: a name below `engines` of the data directory, as `infer engine list` shows it, or the absolute path of a virtual environment with infer-worker.',
      example: '/srv/diffusers',
      with: python,
      absent: 'speech for speech and transcription, python for others',
    }),
  dtype: z.enum(['float32', 'bfloat16', 'float16']).optional().meta({
    description: 'Number format of the weights.',
    example: 'bfloat16',
    with: python,
    absent: 'that of the files on a GPU, float32 or int8 on the processor',
  }),
  quantization: z
    .string()
    .regex(/^[a-z0-9_]{1,32}$/, 'Write a name such as nf4 or int8.')
    .optional()
    .meta({
      description: 'Number format to which the weights are quantized when they are loaded. The library must know it.',
      example: 'nf4',
      with: python,
      absent: 'none',
    }),
  offload: z.enum(['none', 'model', 'sequential']).optional().meta({
    description:
      'Parts of the model that wait in the memory of the host: none, whole models that do not compute, or every layer.',
    example: 'model',
    with: python,
    absent: 'by what fits into the booked memory',
  }),
  loras: z
    .array(
      z
        .string()
        .regex(
          /^\/[^\0\n=]+(=-?\d{1,2}(\.\d{1,4})?)?$/,
          'Write the absolute path of a file, with a weight as in /models/style.safetensors=0.8.',
        ),
    )
    .max(16)
    .optional()
    .meta({
      description: 'LoRA files that change the model, each with its weight; without one it is 1.',
      example: ['/models/style.safetensors=0.8'],
      with: python,
      absent: 'none',
    }),
  compile: z.boolean().optional().meta({
    description: 'Compile the model with `torch.compile`: a long first request, then faster ones. The result is kept.',
    example: true,
    with: python,
    absent: 'false',
  }),
}
