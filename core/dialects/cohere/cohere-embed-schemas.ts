import { z } from 'zod'
import {
  dimensions,
  extras,
  inputType,
  model,
  NonEmptyText,
  vectorTypes,
  vectorTypeText,
} from '../../schemas/vectors.ts'

/** The wire shapes of Cohere's embeddings. Source: the types of its official client. */
export const cohereVectorTypes = [...vectorTypes, 'base64'] as const
const maxTexts = 2048
const noImages = z
  .array(z.unknown())
  .nullish()
  .refine(images => !images?.length, { params: { notImplemented: true } })
  .describe('Not supported: the engines embed texts only. An empty list is accepted.')

export const CohereEmbedRequest = z
  .object({
    model,
    texts: z.array(NonEmptyText).max(maxTexts).nullish().describe('Up to 2048 texts. Send these or `inputs`.'),
    inputs: z
      .array(
        z.object({
          content: z
            .array(
              z.object({
                type: z.string().describe('`text`; `image_url` is not supported.'),
                text: z.string().optional().describe('The text.'),
              }),
            )
            .min(1)
            .describe('Parts of the text, joined by line breaks.'),
        }),
      )
      .max(maxTexts)
      .nullish()
      .describe('Up to 2048 inputs of text parts.'),
    images: noImages,
    input_type: inputType,
    embedding_types: z
      .array(z.enum(cohereVectorTypes))
      .min(1)
      .max(cohereVectorTypes.length)
      .nullish()
      .describe(
        `Types in which to return each vector. ${vectorTypeText} \`base64\` has 32-bit floats. Default: \`float\`.`,
      ),
    output_dimension: dimensions.describe('Shorten each vector to this many numbers, normalized again. Default: all.'),
    max_tokens: z.int().min(1).nullish().describe('Cut each text to this many tokens.'),
    truncate: z
      .enum(['NONE', 'START', 'END'])
      .nullish()
      .describe('`END` cuts texts that are too long, `NONE` refuses them; `START` is not supported. Default: `END`.'),
    priority: extras.priority,
    response_type: z
      .enum(['embeddings_floats', 'embeddings_by_type'])
      .nullish()
      .describe('Form of `embeddings`: a list of vectors as in the first version of the API, or one for each type.'),
  })
  .meta({ id: 'CohereEmbedRequest', description: 'Texts to turn into vectors, in the form of Cohere.' })

const vectorLists = z.array(z.array(z.number()))
const ofType = (type: string) => vectorLists.optional().describe(`Vectors of the type \`${type}\`.`)
export const CohereEmbedResponse = z
  .object({
    id: z.string().describe('Id of the answer.'),
    response_type: z.enum(['embeddings_floats', 'embeddings_by_type']).describe('Form of `embeddings`.'),
    embeddings: z
      .union([
        vectorLists,
        z.object({
          float: ofType('float'),
          int8: ofType('int8'),
          uint8: ofType('uint8'),
          binary: ofType('binary'),
          ubinary: ofType('ubinary'),
          base64: z.array(z.string()).optional().describe('32-bit floats in base64.'),
        }),
      ])
      .describe('One vector for each text, in the order of the request, for each requested type.'),
    texts: z.array(z.string()).describe('The texts.'),
    images: z.array(z.unknown()).describe('Always empty.'),
    meta: z
      .object({
        api_version: z.object({ version: z.string().describe('`1` or `2`.') }).describe('Version of the Cohere API.'),
        billed_units: z.object({ input_tokens: z.int().describe('Tokens of the texts.') }).describe('What was used.'),
      })
      .describe('For clients of Cohere.'),
  })
  .meta({ id: 'CohereEmbedResponse', description: 'Vectors of texts, in the form of Cohere.' })
