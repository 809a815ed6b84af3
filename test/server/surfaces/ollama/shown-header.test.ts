import { expect, test } from 'vitest'
import { ollamaModelRoutes, parameterSize } from '../../../../server/surfaces/ollama/models.ts'

test.each([
  [8_190_735_360, '8.2B'],
  [1_000_000_000, '1B'],
  [596_049_920, '596M'],
  [137_000, '137K'],
  [12, '12'],
])('%i parameters are %s', (count, text) => expect(parameterSize(count)).toBe(text))

interface Tags {
  handle: (request: object, exchange: object) => Promise<{ models: { details: object }[] }>
}

test('a list reads one header at a time, and again what could not be read', async () => {
  const models = Array.from({ length: 300 }, (_, at) => ({
    id: `m${at}`,
    engine: 'gguf',
    source: `/m${at}.gguf`,
    tasks: ['std/chat-completion'],
    enabled: true,
  }))
  const names = models.map(model => ({ listed: { ...model, modelId: model.id, kind: 'id' } }))
  let [running, most, read] = [0, 0, 0]
  const owners = {
    fleet: { snapshot: () => ({ residents: [] }) },
    registry: { readAt: 0, names: () => names },
    cpu: {
      async ggufHeader() {
        most = Math.max(most, ++running)
        await Promise.resolve()
        running--
        if (read++ === 0) throw new Error('The file is being copied.')
        return { architecture: 'qwen3', sizeLabel: '8B', quantization: 'Q8_0' }
      },
    },
  }
  const tags = ollamaModelRoutes(owners as never).find(({ path }) => path === '/ollama/api/tags') as unknown as Tags
  const list = () => tags.handle({}, { caller: { token: { models: null } } })
  const [first, second] = (await list()).models
  expect([first!.details, second!.details]).toMatchObject([{ family: '' }, { family: 'qwen3' }])
  expect(most).toBe(1)
  expect((await list()).models[0]!.details).toMatchObject({ family: 'qwen3', quantization_level: 'Q8_0' })
  expect(read).toBe(301)
})
