import { useId, useState } from 'react'
import { api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { controlClass } from '../../components/fields.tsx'
import { sentenceText } from '../../components/format.ts'
import { overviewText } from '../../text/overview.ts'

/** Lengths of a pause, seconds; 0 until it is resumed. */
const lengths = [1_800, 7_200, 28_800, 0] as const

/** Says until when a device is paused, and pauses or resumes it; without the buttons for a session that may not. */
export function DevicePause({ device }: { device: Schema<'DeviceStatus'> }) {
  const { ownerCan } = useSession()
  const { id, paused } = device
  const mayChange = ownerCan('admin:write')
  if (!paused && !mayChange) return null
  return (
    <div className="flex max-w-md flex-wrap items-center gap-2">
      {paused && <p className="text-warning min-w-0 flex-1 text-xs">{sentenceText(paused.reason)}</p>}
      {mayChange && (paused ? <Resume id={id} /> : <Pause id={id} />)}
    </div>
  )
}

function Pause({ id }: { id: string }) {
  const select = useId()
  const [length, setLength] = useState<number>(lengths[1])
  const { mutate, isPending } = useAction(
    () =>
      dataOf(
        api.POST('/api/gpu/pause', {
          body: { devices: [id], ...(length > 0 && { for: length }) },
          params: { query: { wait: 1 } },
        }),
      ),
    ({ engines }) =>
      engines.some(({ devices }) => devices.includes(id)) ? overviewText.pausing(id) : overviewText.isPaused(id),
    ['overview'],
  )
  return (
    <>
      <label htmlFor={select} className="sr-only">
        {overviewText.pauseFor(id)}
      </label>
      <select
        id={select}
        value={length}
        onChange={({ target }) => setLength(Number(target.value))}
        className={`${controlClass} w-32! text-xs`}
      >
        {lengths.map(one => (
          <option key={one} value={one}>
            {overviewText.pauseLengths[one]}
          </option>
        ))}
      </select>
      <Button
        small
        busy={isPending}
        aria-label={`${overviewText.pause} ${id}`}
        onClick={() => mutate()}
        label={overviewText.pause}
      />
    </>
  )
}

function Resume({ id }: { id: string }) {
  const { mutate, isPending } = useAction(
    () => dataOf(api.POST('/api/gpu/resume', { body: { devices: [id] } })),
    () => overviewText.isResumed(id),
    ['overview'],
  )
  return (
    <Button
      small
      busy={isPending}
      aria-label={`${overviewText.resume} ${id}`}
      onClick={() => mutate()}
      label={overviewText.resume}
    />
  )
}
