import { expect, test } from 'vitest'
import { engineFacts, enginesWithFacts } from '../../../core/models/engine-facts.ts'
import { features, Model } from '../../../core/models/model.ts'
import { generationTasks, operationOf, modelTasks as tasks } from '../../../core/schemas/task.ts'
import { allFeatures } from '../../../gpu/presets/preset.ts'
import { presetOf, presets, traitsOf } from '../../../gpu/presets/presets.ts'

const model = (of: object): Model => Model.parse({ id: 'org/m', source: '/models/m', ...of })

test('the built-in engine declares only what it supports', () => {
  const { features: able } = traitsOf(model({}))
  expect(features.filter(feature => !able.has(feature)).sort()).toEqual([
    'audio',
    'best_of',
    'files',
    'images',
    'segments',
    'speakers',
    'suffix',
    'transcription_stream',
    'transparent_background',
    'variations',
    'voice_cloning',
    'words',
  ])
})
test('vLLM-Omni has its own fields for the recording of a voice', () => {
  const of = { engine: 'vllm', tasks: ['std/audio-speech'], features: ['voice_cloning'] }
  const { speech, features: able } = traitsOf(model(of))
  expect([speech!.reference, able.has('voice_cloning')]).toEqual([{ audio: 'ref_audio', text: 'ref_text' }, true])
  expect(traitsOf(model({ ...of, features: undefined })).features.has('voice_cloning')).toBe(false)
})
test('a Python model has the features of its family, and its environments in their order', () => {
  const hearing = model({ engine: 'python', tasks: ['std/audio-transcription'] })
  expect([...traitsOf(hearing).features]).toEqual(['segments', 'words', 'transcription_stream'])
  expect(presetOf(hearing).environments!(hearing)).toEqual(['speech', 'python'])
  const drawing = model({ engine: 'python', tasks: ['slug/text-to-image'] })
  expect([...traitsOf(drawing).features]).toEqual([])
  expect(presetOf(drawing).environments!(drawing)).toEqual(['python'])
  const own = model({ engine: 'python', tasks: ['std/audio-speech'], environment: '/srv/kokoro' })
  expect(presetOf(own).environments!(own)).toEqual(['/srv/kokoro'])
})
test('llama-server returns logits, and takes images only with a projector', () => {
  const plain = traitsOf(model({ engine: 'llama-server' }))
  expect(plain.rerankScores).toBe('logit')
  expect(plain.features.has('images')).toBe(false)
  expect(plain.features.has('repetition_penalty')).toBe(false)
  const seeing = traitsOf(model({ engine: 'llama-server', args: ['--mmproj', 'f'] }))
  expect(seeing.features.has('images')).toBe(true)
})
test('custom and remote have the features that are not silently ignored', () => {
  for (const of of [
    { engine: 'custom', command: ['{port}'] },
    { engine: 'remote', url: 'http://h' },
  ])
    expect([...traitsOf(model(of)).features]).toEqual([...allFeatures])
})
test('the configuration overrides the features and the model name sent to the engine', () => {
  const traits = traitsOf(model({ features: ['tools'], upstream_id: 'other' }))
  expect([...traits.features]).toEqual(['tools'])
  expect(traits.upstreamId).toBe('other')
})
test('every engine that offers scores has a route for them', () => {
  for (const preset of presets.values()) {
    const { routes: own } = preset.traits(model({ engine: preset.name, url: 'http://h', command: ['{port}'] }))
    if (!own.embed && !own.rerank) continue
    const one = model({ engine: preset.name, url: 'http://h', command: ['{port}'], tasks: [...tasks] })
    const { scoreBy, routes } = preset.traits(one)
    if (routes.embed) expect(routes[scoreBy === 'embeddings' ? 'embed' : scoreBy]!.path).toMatch(/^\//)
  }
})
test('image and video tasks are available from the engines that accept any task', () => {
  for (const of of [
    { engine: 'demo' },
    { engine: 'custom', command: ['{port}'] },
    { engine: 'remote', url: 'http://h' },
  ]) {
    const { routes } = traitsOf(model({ ...of, tasks: [...generationTasks] }))
    for (const task of generationTasks)
      expect(routes[operationOf(task)]).toEqual({ protocol: 'infer-generation', path: '/v1/generate' })
  }
  const below = traitsOf(model({ engine: 'remote', url: 'http://h/video/v1', tasks: ['slug/text-to-video'] }))
  expect(below.routes['create-video']!.path).toBe('/video/v1/generate')
})
test('remote and custom serve images and videos by the routes of OpenAI if `protocol` says so', () => {
  const there = { engine: 'remote', url: 'http://h/openai/v1', protocol: 'openai' }
  const { routes } = traitsOf(model({ ...there, tasks: ['slug/text-to-image', 'slug/image-to-video'] }))
  expect(routes['create-image']).toEqual({ protocol: 'openai-images', path: '/openai/v1/images/generations' })
  expect(routes['animate-image']).toEqual({ protocol: 'openai-videos', path: '/openai/v1/videos' })
  const own = model({ engine: 'custom', command: ['{port}'], protocol: 'openai', tasks: ['slug/text-to-image'] })
  expect(presetOf(own).reportsRunning!(own)).toBe(false)
})
test('facts about engines below the presets are about presets', () => {
  expect([...presets.keys()]).toEqual(expect.arrayContaining(enginesWithFacts))
  for (const { name, runsOn } of presets.values())
    expect(engineFacts(name).isElsewhere === true).toBe(runsOn === 'elsewhere')
})
test('TEI gets the documents of a reranking as texts', () => {
  expect(traitsOf(model({ engine: 'tei', tasks: ['std/rerank'] }))).toMatchObject({ rerankField: 'texts' })
})
const bases: [url: string, path: string, origin: string][] = [
  ['https://api.example.com/v1', '/v1/chat/completions', 'https://api.example.com'],
  ['https://api.example.com/v1/', '/v1/chat/completions', 'https://api.example.com'],
  ['http://10.0.0.5:8000', '/v1/chat/completions', 'http://10.0.0.5:8000'],
  ['https://h/openai/v2', '/openai/v2/chat/completions', 'https://h'],
]
test.each(bases)('remote %s gets requests at %s', (url, path, origin) => {
  const one = model({ engine: 'remote', url })
  expect(traitsOf(one).routes.chat!.path).toBe(path)
  expect(presetOf(one).addresses(one)).toEqual([origin])
})
const severalUrls: [of: object, fault: RegExp | null][] = [
  [{ urls: ['http://a:1/v1', 'http://b:1/v1/'] }, null],
  [{ url: 'http://a:1', urls: ['http://b:1'] }, /has 'url' and 'urls'/],
  [{}, /needs 'url'/],
  [{ urls: ['http://a:1', 'http://a:1'] }, /twice/],
  [{ urls: ['http://a:1/v1', 'http://b:1/openai'] }, /the same path: '\/v1' is not '\/openai'/],
]
test.each(severalUrls)('remote with the addresses %j', (of, fault) => {
  const one = model({ engine: 'remote', ...of })
  if (fault) expect(() => presetOf(one)).toThrow(fault)
  else expect(presetOf(one).addresses(one)).toEqual(['http://a:1', 'http://b:1'])
})
test("remote uses the key of its variable, the others the launch's", () => {
  const one = model({ engine: 'remote', url: 'http://h', api_key_env: 'THEIR_KEY' })
  expect(presetOf(one).key(one, 'launch', { THEIR_KEY: 'secret' })).toBe('secret')
  expect(presetOf(one).key(one, 'launch', {})).toBeUndefined()
  expect(presetOf(model({})).key(model({}), 'launch', {})).toBe('launch')
})

test('the engines with LoRA adapters are those of which core knows when they load them', () => {
  const able = [...presets.values()].flatMap(({ name, adapters }) =>
    adapters ? [[name, adapters.routes ? 'running' : 'start']] : [],
  )
  expect(able).toEqual(
    [...presets.keys()].flatMap(name =>
      engineFacts(name).loadsAdapters ? [[name, engineFacts(name).loadsAdapters]] : [],
    ),
  )
})
