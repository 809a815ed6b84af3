import type { FailureCode } from '../../../core/failure.ts'

/** Error codes that belong together, for the `errorCodes` of routes. */
export const errorGroups = {
  /** For requests whose work is stored as a job. */
  submit: [
    'model_not_found',
    'unsupported_task',
    'unsupported_parameter',
    'model_not_allowed',
    'region_restricted',
    'conflict',
    'idempotency_key_reused',
    'queue_full',
    'storage_full',
    'disk_full',
    'no_capacity',
  ],
  /** For requests whose caller waits for the result. */
  wait: [
    'context_length_exceeded',
    'idempotency_key_in_use',
    'queue_full',
    'cancelled',
    'worker_error',
    'worker_crashed',
    'model_warming_up',
    'no_capacity',
    'timeout',
  ],
  /** For requests with media. */
  media: [
    'invalid_image',
    'invalid_video',
    'invalid_audio',
    'url_fetch_failed',
    'not_found',
    'output_expired',
    'storage_full',
    'disk_full',
  ],
  /** For signed URLs. */
  signed: ['invalid_signature', 'invalid_value'],
} as const satisfies Record<string, readonly FailureCode[]>
