import { useEffect, useState } from 'react'
import { type Schema, send } from '../../api/client.ts'
import { useJob } from '../../api/job.ts'
import { jobsText } from '../../text/jobs.ts'

/** The newest unfinished image of a job that runs; nothing while there is none. */
export function UnfinishedImage({ job: { id, previews } }: { job: Pick<Schema<'Job'>, 'id' | 'previews'> }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    if (previews === 0) return
    const stop = new AbortController()
    // An image cannot send the header that a session needs, so the page reads it.
    send(`/api/jobs/${id}/preview`, { signal: stop.signal })
      .then(response => response.blob())
      .then(image => setUrl(now => (image.size > 0 ? URL.createObjectURL(image) : now)))
      // The result, or why there is none, follows with the job.
      .catch(() => {})
    return () => stop.abort()
  }, [id, previews])
  useEffect(() => () => void (url && URL.revokeObjectURL(url)), [url])
  if (url === undefined) return null
  return <img src={url} alt={jobsText.unfinished} className="bg-raised max-h-96 max-w-full rounded" />
}

/** The same by the id of a job that runs, for pages that do not have the job. */
export function UnfinishedImageOf({ jobId }: { jobId: string }) {
  const { data: job } = useJob(jobId)
  return job && <UnfinishedImage job={job} />
}
