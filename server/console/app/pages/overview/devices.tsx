import { memo } from 'react'
import type { Schema } from '../../api/client.ts'
import { modelHref } from '../../components/addresses.ts'
import { TextLink } from '../../components/button.tsx'
import { sizeText } from '../../components/format.ts'
import { Meter, meterColours } from '../../components/meter.tsx'
import { EngineStateView, ModelActions, ModelLink } from '../../components/model.tsx'
import { modelText } from '../../text/models.ts'
import { overviewText } from '../../text/overview.ts'
import { DevicePause } from './device-pause.tsx'
import { memoryUse } from './memory-use.ts'

type Device = Schema<'DeviceStatus'>
type Engine = Schema<'EngineStatus'>
type Saved = Schema<'ModelLoad'>['saved_conversations']

/** The devices with their memory, and the engines on them with the conversations that are saved of their models. */
export function Devices({
  devices,
  engines,
  models,
}: {
  devices: readonly Device[]
  engines: readonly Engine[]
  models: readonly Schema<'ModelLoad'>[]
}) {
  const saved = new Map(models.map(model => [model.model_id, model.saved_conversations]))
  return (
    <ul className={`grid gap-3 ${devices.length > 1 ? 'lg:grid-cols-2' : ''}`}>
      {devices.map(device => (
        <li key={device.id} className="border-line bg-surface min-w-0 rounded-lg border p-4 shadow-xs">
          <DeviceView
            device={device}
            engines={engines.filter(engine => engine.devices.includes(device.id))}
            saved={saved}
          />
        </li>
      ))}
    </ul>
  )
}

function DeviceView({
  device,
  engines,
  saved,
}: {
  device: Device
  engines: readonly Engine[]
  saved: ReadonlyMap<string, Saved>
}) {
  const use = memoryUse(device)
  const name = device.kind === 'cpu' ? overviewText.processor : device.name
  const parts = (['own', 'foreign', 'reserved'] as const).map(of => ({
    name: overviewText.memoryParts[of],
    amount: use[of],
  }))
  return (
    <>
      <div className="mb-3 flex flex-wrap items-start justify-between gap-x-3 gap-y-2">
        <div className="min-w-0">
          <h3 className="text-base font-medium">
            {device.pool === null ? name : overviewText.inPool(name, device.pool)}
          </h3>
          <p className="text-muted text-xs tabular-nums empty:hidden">{readingsOf(device).join(' · ')}</p>
        </div>
        {device.pool === null && <DevicePause device={device} />}
      </div>
      <p aria-hidden className="mb-1 text-2xl font-semibold tracking-tight tabular-nums">
        {sizeText(use.own + use.reserved + use.foreign)}
        <span className="text-muted text-sm font-normal tracking-normal"> / {sizeText(device.total_bytes)}</span>
      </p>
      <Meter
        label={overviewText.memory}
        value={overviewText.memoryValue(
          sizeText(use.own + use.reserved + use.foreign),
          sizeText(device.total_bytes),
          device.used_bytes !== null,
        )}
        whole={device.total_bytes}
        parts={parts}
      />
      <p className="text-muted mt-1 flex flex-wrap gap-x-3 text-xs tabular-nums">
        {parts.map(({ name, amount }, at) =>
          amount === 0 ? null : (
            <span key={name} className="inline-flex items-center gap-1">
              <span aria-hidden className={`inline-block size-2 rounded-full ${meterColours[at]}`} />
              {`${sizeText(amount)} ${name}`}
            </span>
          ),
        )}
      </p>
      {engines.length === 0 ? (
        <p className="text-muted mt-3">{overviewText.noEngines}</p>
      ) : (
        <ul aria-label={overviewText.engines(device.name)} className="divide-line mt-2 divide-y">
          {engines.map(engine => (
            <EngineRow
              key={engine.id}
              engine={engine}
              device={device.id}
              conversations={saved.get(engine.model_id)?.conversations ?? 0}
              savedBytes={saved.get(engine.model_id)?.bytes ?? 0}
            />
          ))}
        </ul>
      )}
    </>
  )
}

const EngineRow = memo(function EngineRow({
  engine,
  device,
  conversations,
  savedBytes,
}: {
  engine: Engine
  device: string
  conversations: number
  savedBytes: number
}) {
  const { model_id: model, state, slots, busy, placement } = engine
  const memory = engine.device_memory_bytes[engine.devices.indexOf(device)] ?? engine.memory_bytes
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
      <span className="min-w-40 flex-1">
        <ModelLink id={model} />
      </span>
      <span className="text-muted text-xs tabular-nums">
        {overviewText.engineSlots(busy, slots)} · {sizeText(memory)}
        {placement.layers !== null && ` · ${overviewText.layers(placement.gpu_layers ?? 0, placement.layers)}`}
        {conversations > 0 && ` · ${overviewText.savedConversations(conversations, sizeText(savedBytes))}`}
      </span>
      {state !== 'ready' && <EngineStateView state={state} />}
      <span className="flex items-center gap-2">
        <TextLink href={modelHref(model, '?part=log')} aria-label={modelText.logOf(model)} label={modelText.log} />
        {state === 'ready' && <ModelActions id={model} status="warm" />}
      </span>
      {placement.advice !== null && <p className="text-warning w-full text-xs">{placement.detail}</p>}
    </li>
  )
})

const readingsOf = ({
  utilization,
  temperature_celsius: celsius,
  power_watts: watts,
  power_limit_watts: limit,
}: Device) =>
  [
    utilization !== null && overviewText.utilization(Math.round(utilization * 100)),
    celsius !== null && overviewText.temperature(Math.round(celsius)),
    watts !== null && overviewText.power(Math.round(watts), limit),
  ].filter(Boolean)
