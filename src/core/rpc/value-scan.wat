;; Follows the brackets and strings of one JSON value through its bytes, 64 at a time, until the
;; bracket that closes it. `value-scan.ts` holds the assembled module:
;; wat2wasm value-scan.wat --output=- | base64 --wrap=0
(module
  (memory (export "memory") 1)
  ;; What is carried from one piece of a value to the next.
  (global $depth (export "depth") (mut i32) (i32.const 0))
  (global $inString (export "inString") (mut i32) (i32.const 0))
  (global $escaped (export "escaped") (mut i32) (i32.const 0))

  ;; Byte by byte: offset after the bracket that closes the value, or -1.
  (func $slow (param $at i32) (param $end i32) (result i32)
    (local $c i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $c (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (global.get $escaped)
          (then (global.set $escaped (i32.const 0)) (br $next)))
        (if (i32.eq (local.get $c) (i32.const 0x22))
          (then (global.set $inString (i32.eqz (global.get $inString))) (br $next)))
        (if (global.get $inString)
          (then
            (global.set $escaped (i32.eq (local.get $c) (i32.const 0x5c)))
            (br $next)))
        ;; With this bit, `[` is as a left brace and `]` as a right one.
        (local.set $c (i32.or (local.get $c) (i32.const 0x20)))
        (if (i32.eq (local.get $c) (i32.const 0x7b))
          (then (global.set $depth (i32.add (global.get $depth) (i32.const 1))) (br $next)))
        (if (i32.eq (local.get $c) (i32.const 0x7d))
          (then
            (global.set $depth (i32.sub (global.get $depth) (i32.const 1)))
            (if (i32.eqz (global.get $depth)) (then (return (local.get $at))))))
        (br $next)))
    (i32.const -1))

  (func (export "scan") (param $at i32) (param $end i32) (result i32)
    (local $v0 v128) (local $v1 v128) (local $v2 v128) (local $v3 v128)
    (local $w0 v128) (local $w1 v128) (local $w2 v128) (local $w3 v128)
    ;; Bits of the bytes within strings, of brackets that open and of those that close.
    (local $in i64) (local $o i64) (local $c i64)
    ;; The depth, and all bits if the bytes before ended within a string; `$q` has the quotes, each
    ;; pair of them cancelled, of blocks that are not counted in it yet.
    (local $d i32) (local $s i64) (local $q v128)
    (local $closed i32)
    ;; Brackets that close and are still to be looked at, the first of them, and how many were.
    (local $left i64) (local $bit i64) (local $closes i32)
    (local.set $d (global.get $depth))
    (local.set $s (i64.sub (i64.const 0) (i64.extend_i32_u (global.get $inString))))
    (block $done
      (loop $next
        (br_if $done (i32.gt_u (i32.add (local.get $at) (i32.const 64)) (local.get $end)))
        (local.set $v0 (v128.load (local.get $at)))
        (local.set $v1 (v128.load offset=16 (local.get $at)))
        (local.set $v2 (v128.load offset=32 (local.get $at)))
        (local.set $v3 (v128.load offset=48 (local.get $at)))
        ;; Most blocks have no bracket and no backslash: only their quotes count. With the bit set,
        ;; these are above 0x7a, as few other bytes are.
        (if (i32.eqz (i32.or (global.get $escaped) (v128.any_true (i8x16.sub_sat_u
              (i8x16.max_u
                (i8x16.max_u (v128.or (local.get $v0) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20)) (v128.or (local.get $v1) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20)))
                (i8x16.max_u (v128.or (local.get $v2) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20)) (v128.or (local.get $v3) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20))))
              (v128.const i8x16 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a 0x7a)))))
          (then
            (local.set $q (v128.xor (local.get $q) (v128.xor
              (v128.xor (i8x16.eq (local.get $v0) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22)) (i8x16.eq (local.get $v1) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22)))
              (v128.xor (i8x16.eq (local.get $v2) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22)) (i8x16.eq (local.get $v3) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22))))))
            (local.set $at (i32.add (local.get $at) (i32.const 64)))
            (br $next)))
        (local.set $s (i64.xor (local.get $s) (i64.sub (i64.const 0) (i64.extend_i32_u
          (i32.and (i32.popcnt (i8x16.bitmask (local.get $q))) (i32.const 1))))))
        (local.set $q (v128.const i64x2 0 0))
        ;; A backslash is rare.
        (if (i32.or (global.get $escaped) (v128.any_true (v128.or (v128.or (i8x16.eq (local.get $v0) (v128.const i8x16 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c)) (i8x16.eq (local.get $v1) (v128.const i8x16 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c))) (v128.or (i8x16.eq (local.get $v2) (v128.const i8x16 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c)) (i8x16.eq (local.get $v3) (v128.const i8x16 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c))))))
          (then
            (global.set $depth (local.get $d))
            (global.set $inString (i64.ne (local.get $s) (i64.const 0)))
            (local.set $closed (call $slow (local.get $at) (i32.add (local.get $at) (i32.const 64))))
            (if (i32.ne (local.get $closed) (i32.const -1)) (then (return (local.get $closed))))
            (local.set $d (global.get $depth))
            (local.set $s (i64.sub (i64.const 0) (i64.extend_i32_u (global.get $inString))))
            (local.set $at (i32.add (local.get $at) (i32.const 64)))
            (br $next)))
        (local.set $in (i64.or (i64.or (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v0) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22)))) (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v1) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22)))) (i64.const 16)))
        (i64.or (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v2) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22)))) (i64.const 32)) (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v3) (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22)))) (i64.const 48)))))
        (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 1))))
        (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 2))))
        (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 4))))
        (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 8))))
        (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 16))))
        (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 32))))
        (local.set $in (i64.xor (local.get $in) (local.get $s)))
        (local.set $w0 (v128.or (local.get $v0) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20)))
        (local.set $w1 (v128.or (local.get $v1) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20)))
        (local.set $w2 (v128.or (local.get $v2) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20)))
        (local.set $w3 (v128.or (local.get $v3) (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20)))
        (local.set $o (i64.and (i64.or (i64.or (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w0) (v128.const i8x16 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b)))) (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w1) (v128.const i8x16 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b)))) (i64.const 16)))
        (i64.or (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w2) (v128.const i8x16 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b)))) (i64.const 32)) (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w3) (v128.const i8x16 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b)))) (i64.const 48)))) (i64.xor (local.get $in) (i64.const -1))))
        (local.set $c (i64.and (i64.or (i64.or (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w0) (v128.const i8x16 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d)))) (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w1) (v128.const i8x16 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d)))) (i64.const 16)))
        (i64.or (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w2) (v128.const i8x16 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d)))) (i64.const 32)) (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $w3) (v128.const i8x16 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d)))) (i64.const 48)))) (i64.xor (local.get $in) (i64.const -1))))
        ;; The value may end among these bytes.
        (if (i32.and
              (i64.ne (local.get $c) (i64.const 0))
              (i32.le_s (local.get $d) (i32.wrap_i64 (i64.popcnt (local.get $c)))))
          (then
            ;; It ends at the first bracket where as many closed as were open and opened before it.
            (local.set $left (local.get $c))
            (local.set $closes (i32.const 0))
            (loop $close
              (local.set $closes (i32.add (local.get $closes) (i32.const 1)))
              (local.set $bit (i64.ctz (local.get $left)))
              (if (i32.eq (local.get $closes) (i32.add (local.get $d) (i32.wrap_i64 (i64.popcnt
                    (i64.and (local.get $o) (i64.sub (i64.shl (i64.const 1) (local.get $bit)) (i64.const 1)))))))
                (then
                  (global.set $depth (i32.const 0))
                  (return (i32.add (local.get $at) (i32.add (i32.wrap_i64 (local.get $bit)) (i32.const 1))))))
              (local.set $left (i64.and (local.get $left) (i64.sub (local.get $left) (i64.const 1))))
              (br_if $close (i64.ne (local.get $left) (i64.const 0))))))
        (local.set $d (i32.add (local.get $d) (i32.wrap_i64
          (i64.sub (i64.popcnt (local.get $o)) (i64.popcnt (local.get $c))))))
        (local.set $s (i64.shr_s (local.get $in) (i64.const 63)))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $next)))
    (local.set $s (i64.xor (local.get $s) (i64.sub (i64.const 0) (i64.extend_i32_u
      (i32.and (i32.popcnt (i8x16.bitmask (local.get $q))) (i32.const 1))))))
    (global.set $depth (local.get $d))
    (global.set $inString (i64.ne (local.get $s) (i64.const 0)))
    (call $slow (local.get $at) (local.get $end))))
