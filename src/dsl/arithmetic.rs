//! Operators: which shapes combine, and to what.

use super::{Channels, PerToken, Scalar, Tokens};
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

/// An operator between two values that are there.
macro_rules! operator {
    ($trait:ident $method:ident: [$($g:ident)*] $left:ty, $right:ty => $out:ty, $value:expr) => {
        impl<$($g),*> $trait<$right> for $left {
            type Output = $out;
            fn $method(self, _: $right) -> $out {
                $value
            }
        }
    };
}

macro_rules! arithmetic {
    ($([$($g:ident)*] $left:ty, $right:ty => $out:ty, $value:expr;)*) => {$(
        operator!(Add add: [$($g)*] $left, $right => $out, $value);
        operator!(Sub sub: [$($g)*] $left, $right => $out, $value);
        operator!(Mul mul: [$($g)*] $left, $right => $out, $value);
    )*};
}

arithmetic! {
    [D E] Tokens<D>, Tokens<E> => Tokens<f32>, Tokens(PhantomData);
    [D E] Tokens<D>, Channels<E> => Tokens<f32>, Tokens(PhantomData);
    [D E] Channels<D>, Tokens<E> => Tokens<f32>, Tokens(PhantomData);
    [D E] Tokens<D>, PerToken<E> => Tokens<f32>, Tokens(PhantomData);
    [D E] PerToken<D>, Tokens<E> => Tokens<f32>, Tokens(PhantomData);
    [D] Tokens<D>, Scalar => Tokens<f32>, Tokens(PhantomData);
    [D] Scalar, Tokens<D> => Tokens<f32>, Tokens(PhantomData);
    [D] Tokens<D>, f32 => Tokens<f32>, Tokens(PhantomData);
    [D] f32, Tokens<D> => Tokens<f32>, Tokens(PhantomData);

    [D E] Channels<D>, Channels<E> => Channels<f32>, Channels(PhantomData);
    [D E] Channels<D>, PerToken<E> => Tokens<f32>, Tokens(PhantomData);
    [D E] PerToken<D>, Channels<E> => Tokens<f32>, Tokens(PhantomData);
    [D] Channels<D>, Scalar => Channels<f32>, Channels(PhantomData);
    [D] Scalar, Channels<D> => Channels<f32>, Channels(PhantomData);
    [D] Channels<D>, f32 => Channels<f32>, Channels(PhantomData);
    [D] f32, Channels<D> => Channels<f32>, Channels(PhantomData);

    [D E] PerToken<D>, PerToken<E> => PerToken<f32>, PerToken(PhantomData);
    [D] PerToken<D>, Scalar => PerToken<f32>, PerToken(PhantomData);
    [D] Scalar, PerToken<D> => PerToken<f32>, PerToken(PhantomData);
    [D] PerToken<D>, f32 => PerToken<f32>, PerToken(PhantomData);
    [D] f32, PerToken<D> => PerToken<f32>, PerToken(PhantomData);

    [] Scalar, Scalar => Scalar, Scalar(());
    [] Scalar, f32 => Scalar, Scalar(());
    [] f32, Scalar => Scalar, Scalar(());
}

/// `+` and `-` with an operand that may be absent, which must not decide the shape.
macro_rules! optional {
    ($($left:ident, $right:ident;)*) => {$(
        operator!(Add add: [D E] $left<D>, Option<$right<E>> => $left<f32>, $left(PhantomData));
        operator!(Sub sub: [D E] $left<D>, Option<$right<E>> => $left<f32>, $left(PhantomData));
        operator!(Add add: [D E] Option<$right<E>>, $left<D> => $left<f32>, $left(PhantomData));
        operator!(Sub sub: [D E] Option<$right<E>>, $left<D> => $left<f32>, $left(PhantomData));
        impl<D, E> AddAssign<Option<$right<E>>> for $left<D> {
            fn add_assign(&mut self, _: Option<$right<E>>) {}
        }
    )*};
}

optional! {
    Tokens, Tokens;
    Tokens, Channels;
    Tokens, PerToken;
    Channels, Channels;
    PerToken, PerToken;
}

/// `+=` keeps the shape of what it is assigned to.
macro_rules! assign {
    ($([$($g:ident)*] $left:ty, $right:ty;)*) => {$(
        impl<$($g),*> AddAssign<$right> for $left {
            fn add_assign(&mut self, _: $right) {}
        }
    )*};
}

assign! {
    [D E] Tokens<D>, Tokens<E>;
    [D E] Tokens<D>, Channels<E>;
    [D E] Tokens<D>, PerToken<E>;
    [D] Tokens<D>, Scalar;
    [D] Tokens<D>, f32;
    [D E] Channels<D>, Channels<E>;
    [D] Channels<D>, Scalar;
    [D] Channels<D>, f32;
    [D E] PerToken<D>, PerToken<E>;
    [D] PerToken<D>, Scalar;
    [D] PerToken<D>, f32;
    [] Scalar, Scalar;
    [] Scalar, f32;
    [] f32, Scalar;
}

macro_rules! negation {
    ($($type:ident),*) => {$(
        impl<D> Neg for $type<D> {
            type Output = $type<f32>;
            fn neg(self) -> $type<f32> {
                $type(PhantomData)
            }
        }
    )*};
}

negation!(Tokens, Channels, PerToken);

impl Neg for Scalar {
    type Output = Scalar;
    fn neg(self) -> Scalar {
        self
    }
}
