import type { EngineRoute } from '../../models/engine-traits.ts'
import { comfyui } from './comfyui/comfyui.ts'
import { inferGeneration } from './infer-generation.ts'
import { openaiAudio } from './openai-audio.ts'
import { openaiImages } from './openai-images.ts'
import { openaiVideos } from './openai-videos.ts'
import { piper } from './piper.ts'
import type { AudioProtocol, EngineProtocol, GenerationProtocol } from './protocol.ts'
import { sdServer } from './sd-server.ts'

/** Protocols for audio; a new one is one file and one entry here. */
const audioProtocols: readonly AudioProtocol[] = [openaiAudio, piper]

/** Protocols that generate files; a new one is one file and one entry here. */
const generationProtocols: readonly GenerationProtocol[] = [
  inferGeneration,
  openaiImages,
  openaiVideos,
  sdServer,
  comfyui,
]

/** Returns the protocol for audio and transcription requests to an engine. */
export const audioProtocol = (route: Pick<EngineRoute, 'protocol'>): AudioProtocol => found(audioProtocols, route)

/** Returns the protocol for image and video requests to an engine. */
export const generationProtocol = (route: Pick<EngineRoute, 'protocol'>): GenerationProtocol =>
  found(generationProtocols, route)

function found<P extends EngineProtocol>(protocols: readonly P[], { protocol }: Pick<EngineRoute, 'protocol'>): P {
  const one = protocols.find(({ name }) => name === protocol)
  if (!one) throw new Error(`A preset names the protocol ${protocol} for a task that it is not for.`)
  return one
}
