import type { Limits } from '../../config.ts'
import { ignoredLine, ignoredText } from '../../ignored.ts'
import type { Media } from '../../media/media.ts'
import type { Registry } from '../../models/registry.ts'
import type { Preparation } from '../preparation.ts'
import { audioProtocol } from '../protocols/protocols.ts'
import { answeredResult, type RunTask, workOfJob } from '../run-job.ts'
import { jobRequest, speakerFields } from './transcription.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

/** Runs transcription jobs. Their audio is a stored file of the organization, and the result has the whole transcription. */
export function openTranscriptionRunner({
  registry,
  cpu,
  media,
  limits,
}: {
  registry: Pick<Registry, 'find' | 'catalog'>
  cpu: Pick<Preparation, 'shape'>
  media: Pick<Media, 'decodeAudio' | 'samples'>
  limits: Pick<Limits, 'engine_answer'>
}): RunTask {
  return async (...[job, lease, signal, report]) => {
    const { record, model, catalog, sender } = workOfJob('transcription', job, registry, signal)
    const request = jobRequest(JSON.parse(job.inputs) as TranscriptionRequest)
    const prepared = record.prepare(request, catalog)
    await using sound = await media.decodeAudio(sender, prepared.sound.field, prepared.sound.value)
    const { seconds } = sound
    if (prepared.ignored.length > 0 && !sound.silent)
      report.log('WARN', ignoredLine(model.id, ignoredText(prepared.ignored)))
    const fields = [...prepared.fields, ...(await speakerFields(prepared, media, sender))]
    const answer = await audioProtocol(prepared.route).transcribe(
      lease,
      { path: prepared.route.path, fields },
      sound,
      limits.engine_answer,
      signal,
    )
    // A result holds everything; a shorter response format is for synchronous callers only.
    return answeredResult(await cpu.shape([answer], { ...prepared.answerFormat, seconds, result: true }), model)
  }
}
